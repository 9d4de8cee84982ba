import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from agents import runs
from agents.db import database
from agents.db.compiled_queries import compiled_query
from agents.engine.events import EventType
from agents.models import Run
from agents.models.types import LazyText
from agents.runs import close_codes, disconnections
from agents.web import first_frames
from agents.web.consumers import BadFrame, EventDicts, Subject
from agents.web.presentation.live_run import LiveRunView
from chat import attachments, fragments, messages
from chat.errors import ClientIdConflict, MessageRejected
from chat.messages import message_actions, queue_actions
from chat.models import ChatSession, Message
from chat.sessions import rights, temporary

from . import run_news
from .page_state import MAX_PK, Conversation
from .presence_consumer import PresenceConsumer

logger = logging.getLogger(__name__)

# Events that also change the elements around the conversation.
CHROME_EVENTS = {EventType.RUN_FINISHED, EventType.RUN_PAUSED, EventType.APPROVAL_RESOLVED}


class ChatConsumer(PresenceConsumer):
    """One browser tab on one chat."""

    is_late = False
    page = ""
    _opened: Conversation | None = None  # set by begin()
    is_greeted = False
    new_run_frames = ""  # frames for a message sent on this page

    def find_topic(self) -> str | None:
        if not self.is_signed_in():
            return None
        pk, user = self.scope["url_route"]["kwargs"]["pk"], self.scope["user"]
        for self.session in _visible_sessions(user.pk, pk) if pk <= MAX_PK else ():
            self.may_write = rights.may_write(self.session, user)
            if self._opened is not None:
                self._opened.session = self.session
                self._opened.may_write = self.may_write
            return self.session.topic
        if self.topic and ChatSession.objects.filter(pk=pk).exists():
            self.lost_access_code = close_codes.FORBIDDEN
        return None

    def begin(self) -> None:
        self.topic = self.session.topic
        self.tab = secrets.token_hex(8)
        self.page = _parse_page_name(self.query_params.get("page", [""])[0])
        last = _parse_pk(self.query_params.get("after", [""])[0]) or 0
        user = self.scope["user"]
        self.was_writing = self.may_write
        shown_digest = self.query_params.get("shown", [""])[0][:40]
        self._opened = Conversation(self.session, user, self.may_write, last, shown_digest)

    @property
    def conversation(self) -> Conversation:
        if self._opened is None:
            raise RuntimeError("This page isn't connected yet.")
        return self._opened

    async def send_initial(self) -> None:
        """Bring the page up to date; identical pages share the rendered frames."""
        if (linked := _parse_pk(self.query_params.get("leaf", [""])[0])) is not None:
            async with self.lock:  # a message sent meanwhile belongs to this branch
                await message_actions.show_branch(self.session, self.scope["user"], linked)
        about = (
            self.conversation.last,
            self.conversation.shown_digest,
            "away" in self.query_params,
            self.may_write,
            self.preferences,
        )
        key = (self.session.pk, self.scope["user"].pk, *about)
        conversation, frames = await first_frames.run_shared(key, self._catch_up_page)
        async with self.lock:
            # Access may have been revoked while it waited for its turn.
            if await database.run(self.find_topic) is None:
                await self._end(self.lost_access_code)
            self.conversation.take(conversation)
            self.live_views = self.conversation.live_views
            await self._try_record(
                self._record_arrival, _parse_pk(self.query_params.get("away", [""])[0])
            )
            for frame in frames:
                await self.send(frame)
            self.is_greeted = True
        if self.session.is_temporary:
            self._spawn(temporary.hold_open(self.session))
        await self._update_presence()

    async def _catch_up_page(self) -> tuple[Conversation, list[str]]:
        opened = self.conversation
        user = self.scope["user"]
        conversation = Conversation(
            self.session, user, self.may_write, opened.last, opened.shown_digest
        )
        return conversation, await conversation.catch_up(
            "away" in self.query_params, self.preferences
        )

    def _record_arrival(self, away: int | None) -> None:
        if away is not None:
            seconds = min(away / 1000, disconnections.MAX_AWAY.total_seconds())
            run_ids = self._own_runs(self.live_views)
            disconnections.record_reconnect(run_ids, self.page, timedelta(seconds=seconds))
        elif run_ids := self._own_runs(self._live_runs()):
            disconnections.record_reopen(run_ids)

    async def on_disconnect(self) -> None:
        """Record the departure only while a run is live."""
        if run_ids := self._live_runs():
            await self._try_record(self._record_departure, run_ids)

    def _record_departure(self, run_ids: list[int]) -> None:
        disconnections.record_disconnect(self._own_runs(run_ids), self.page, self.code)

    def _own_runs(self, run_ids: Iterable[int]) -> list[int]:
        """Return runs whose absences are recorded: in a shared chat, only the user's own."""
        own_runs = Run.objects.filter(pk__in=run_ids, user=self.scope["user"].pk)
        is_discussed = self.conversation.is_discussed
        return list(own_runs.values_list("pk", flat=True)) if is_discussed else list(run_ids)

    def _live_runs(self) -> list[int]:
        return [run for run, live_view in self.live_views.items() if live_view.is_live]

    async def _try_record(
        self, act: Callable[Subject, None], *subject: Subject.args, **named: Subject.kwargs
    ) -> None:
        """Record an absence; a failure must not affect the page."""
        if not self.page:
            return
        try:
            await database.run(act, *subject, **named)
        except OperationalError as error:
            logger.warning("Can't save a disconnection: %s", error)

    def missed_frames(self) -> str:
        conversation = self.conversation
        is_behind = conversation.chrome.is_behind(self.session)
        chrome_frames = conversation.chrome.changes(self.session) if is_behind else ""
        return super().missed_frames() + conversation.new_message_frames() + chrome_frames

    def handle(self, frame: dict[str, Any]) -> Awaitable[None]:
        match frame:
            case {"type": "message", "text": str(text), "client_id": str(client_id)}:
                return self.say(text, client_id, _agent_in(frame), frame)
            case {"type": "stop", "run": str(run) | int(run)}:
                return self.stop(_parse_pk(run))
            case {"type": "send_now", "message": str(message) | int(message)}:
                return self.send_now(_parse_pk(message))
            case {"type": "withdraw", "message": str(message) | int(message)}:
                return self.withdraw(_parse_pk(message))
            case {
                "type": "edit",
                "message": str(message) | int(message),
                "text": str(text),
                "client_id": str(client_id),
            }:
                return self.edit(_parse_pk(message), text, client_id, _agent_in(frame))
            case {
                "type": "correct",
                "message": str(message) | int(message),
                "text": str(text),
            }:
                return self.correct(_parse_pk(message), text)
            case {
                "type": "regenerate",
                "message": str(message) | int(message),
                "client_id": str(client_id),
            }:
                choices = (_agent_in(frame), _text_in(frame, "model"))
                return self.regenerate(_parse_pk(message), client_id, *choices)
            case {"type": "show_branch", "message": str(message) | int(message)}:
                return self.show_branch(_parse_pk(message))
            case {
                "type": "delete_message",
                "message": str(message) | int(message),
                "scope": "pair" | "below" as scope,
            }:
                return self.delete_message(_parse_pk(message), scope == "below")
            case _:
                raise BadFrame(_("The page sent an invalid request. Reload it and try again."))

    async def say(self, text: str, client_id: str, agent: str, options: dict[str, Any]) -> None:
        session = self.session
        user = self.scope["user"]
        try:
            # A message is displayed once it is saved, before any events of its run.
            async with self.lock:
                try:
                    message = await messages.submit(
                        *(session, user, text, client_id, agent),
                        options=options,
                        files=attachments.parse_ids(options.get("files")),
                        page=self,
                    )
                finally:
                    frames = self.new_run_frames
                    self.new_run_frames = ""
                    await self.send(frames)
        except MessageRejected as reason:
            percent = getattr(reason, "percent", 0)
            await self.show(partial(fragments.render_notice, percent=percent), reason.args[0])
            if isinstance(reason, ClientIdConflict):
                render_state = partial(fragments.render_composer, refused=client_id)
                await self.show(render_state, self.session)
            return
        # A new message, once displayed, is its own acknowledgement.
        if not message.is_new or not self.is_greeted:
            render_state = partial(fragments.render_composer, acknowledged=client_id)
            await self.show(render_state, self.session, ask=database.run_urgent)

    async def edit(self, pk: int | None, text: str, client_id: str, agent: str) -> None:
        """Send an edited message as a new branch; if that fails, the editor stays open."""
        await database.run_urgent(self._check_access)
        sending = message_actions.edit(
            *(self.session, self.scope["user"], pk, text, client_id, agent), page=self
        )
        try:
            await self._send_branch(sending)
        except MessageRejected as reason:
            await self.show(fragments.render_edit_problem, reason.args[0])

    async def regenerate(self, pk: int | None, client_id: str, agent: str, model: str) -> None:
        await database.run_urgent(self._check_access)
        sending = message_actions.regenerate(
            *(self.session, self.scope["user"], pk, client_id, agent, model), page=self
        )
        try:
            await self._send_branch(sending)
        except MessageRejected as reason:
            await self.send_error(reason.args[0])

    async def _send_branch(self, sending: Awaitable[Message]) -> None:
        """Await a new branch and display it before any events of its run."""
        async with self.lock:
            try:
                message = await sending
            finally:
                frames, self.new_run_frames = self.new_run_frames, ""
                await self.send(frames)
        if not message.is_new or not self.is_greeted:
            await self.show(self.conversation.new_message_frames)

    async def correct(self, pk: int | None, text: str) -> None:
        """Save a corrected text; if that fails, the editor stays open."""
        await database.run_urgent(self._check_access)
        try:
            await message_actions.correct(self.session, self.scope["user"], pk, text)
        except MessageRejected as reason:
            await self.show(fragments.render_edit_problem, reason.args[0])

    async def show_branch(self, pk: int | None) -> None:
        """Switch the branch this user sees; reading is enough for that."""
        if await database.run_urgent(self.find_topic) is None:
            raise BadFrame(_("This chat no longer exists."))
        if not await message_actions.show_branch(self.session, self.scope["user"], pk):
            await self.send_error(_("This message no longer exists."))

    async def delete_message(self, pk: int | None, below: bool) -> None:
        await database.run_urgent(self._check_access)
        user = self.scope["user"]
        try:
            deleted = await message_actions.delete(self.session, user, pk, below=below)
        except MessageRejected as reason:
            await self.send_error(reason.args[0])
        else:
            await self.show(fragments.render_deleted, deleted.count, deleted.removal)

    async def message_corrected(self, notification: dict[str, Any]) -> None:
        await self.show(self.conversation.corrected_frames, notification["message"])

    async def messages_deleted(self, notification: dict[str, Any]) -> None:
        await self.show(self.conversation.new_message_frames)

    async def branch_shown(self, notification: dict[str, Any]) -> None:
        """Follow the user, who switched branches here or in another tab."""
        if notification["user"] == self.scope["user"].pk:
            await self.show(self.conversation.new_message_frames)

    def recheck(self) -> tuple[ChatSession, User]:
        self._check_access()
        return self.session, self.scope["user"]

    def on_saved(self, message: Message) -> None:
        """Render a message that is answered at once."""
        if message.is_new and not message.is_queued and self.is_greeted:
            with self.preferences.applied():
                self.new_run_frames = self.conversation.at_once(message)
        if self.new_run_frames:
            self.looked = time.monotonic()  # everything was just read

    async def stop(self, pk: int | None) -> None:
        run = await database.run_urgent(self._get_live_run, pk)
        if run is not None:
            await runs.stop(run)
        await self.show(fragments.render_composer, self.session, ask=database.run_urgent)

    def _get_live_run(self, pk: int | None) -> Run | None:
        self._check_access()
        if pk is None:
            return None
        return Run.objects.live().filter(pk=pk, topic=self.session.topic).first()

    def _check_access(self) -> None:
        """Check access for every frame, because it can be revoked at any time."""
        if self.find_topic() is None:
            raise BadFrame(_("This chat no longer exists."))
        if not self.may_write:
            raise BadFrame(rights.READ_ONLY_MESSAGE)

    async def send_now(self, pk: int | None) -> None:
        await database.run_urgent(self._check_access)
        if not await queue_actions.send_now(self.session, self.scope["user"], pk):
            self.on_notification("queue.changed", {})  # it was just sent or withdrawn

    async def withdraw(self, pk: int | None) -> None:
        """Withdraw a queued message and return its text to the composer."""
        await database.run_urgent(self._check_access)
        file_ids = await database.run(attachments.ids_of, self.scope["user"], pk)
        text = await queue_actions.withdraw(self.session, self.scope["user"], pk)
        if text is None:
            self.on_notification("queue.changed", {})
        else:
            render_state = partial(
                fragments.render_composer, returned=text, returned_files=file_ids
            )
            await self.show(render_state, self.session)

    def on_page(self, run: int) -> LiveRunView:
        return self.conversation.on_page(run)

    async def message_added(self, notification: dict[str, Any]) -> None:
        if notification["message"] > self.conversation.last:
            await self.show(self.conversation.new_message_frames, notification["run"])

    async def people_changed(self, notification: dict[str, Any]) -> None:
        """Apply changed access: close the page or update what its user can do."""
        await super().people_changed(notification)
        await self._update_presence()
        if self.session.is_shared and not self.conversation.is_discussed:
            await self.show(self.conversation.enable_comments)
        if self.may_write != self.was_writing:
            self.was_writing = self.may_write
            await self.send_error(
                _("Your permissions in this chat have changed. Reload the page.")
            )

    async def chats_changed(self, notification: dict[str, Any]) -> None:
        """Update the list, which the user has changed on this page or another one."""
        await self.show(self.conversation.chrome.list_changes, self.session)

    async def chat_named(self, notification: dict[str, Any]) -> None:
        arguments = notification["chat"], notification["title"]
        # It reads no rows, so it needn't wait for the database thread.
        render_row = self.conversation.chrome.renamed_frames
        await self.show(render_row, self.session, *arguments, ask=_render_here)

    async def run_news(self, notification: dict[str, Any]) -> None:
        """Tell the page that a run of its user has ended or waits, here or in another chat."""
        await self.send(run_news.render(notification))
        if notification["chat"] != self.session.pk:  # its own row changes with the run's events
            await self.show(self.conversation.chrome.list_changes, self.session)

    async def queue_changed(self, notification: dict[str, Any]) -> None:
        await self.show(self.conversation.chrome.changes, self.session)

    def event_frames(self, run: int, events: EventDicts) -> str:
        conversation = self.conversation
        is_known = run in self.live_views or run in conversation.hidden_runs
        frames = [] if is_known else [conversation.new_message_frames()]
        if run not in self.live_views:
            conversation.hidden_runs.add(run)  # on another branch, or above the page
        frames.append(super().event_frames(run, events))
        if {event["type"] for event in events} & CHROME_EVENTS:
            frames.append(self.conversation.chrome.run_status_frames(self.session))
        return "".join(frames)

    async def storage_late(self, notification: dict[str, Any]) -> None:
        self.is_late = True
        await self.send_error(
            _("Can't save right now. The run continues as soon as saving works again.")
        )

    async def run_events(self, notification: dict[str, Any]) -> None:
        if self.is_late:
            self.is_late = False
            await self.send_error("")
        await super().run_events(notification)

    async def send_error(self, sentence: LazyText) -> None:
        await self.show(fragments.render_notice, sentence)


async def _render_here(fragment: Callable[..., str], *subject: Any) -> str:
    return fragment(*subject)


@compiled_query
def _visible_sessions(user: int, pk: int) -> QuerySet[ChatSession]:
    return ChatSession.objects.for_user(user).filter(pk=pk)


def _agent_in(frame: dict[str, Any]) -> str:
    return _text_in(frame, "agent")


def _text_in(frame: dict[str, Any], name: str) -> str:
    value = frame.get(name)
    return value if isinstance(value, str) else ""


def _parse_page_name(text: str) -> str:
    """Return the page's name, if it is valid."""
    return text if re.fullmatch(r"[a-z0-9]{1,40}", text) else ""


def _parse_pk(value: str | int) -> int | None:
    """Return a row's id, or None if the value is invalid."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
