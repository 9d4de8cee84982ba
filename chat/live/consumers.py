"""The socket of a chat's page."""

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from channels.exceptions import StopConsumer
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from pydantic import TypeAdapter

from agents import runs
from agents.db import database, errors
from agents.db.compiled_queries import compiled_query
from agents.db.sanitize import parse_id
from agents.engine.events import EventType
from agents.engine.resilience import TokenBucket
from agents.models import Run
from agents.models.types import LazyText
from agents.runs import close_codes, disconnections
from agents.web.consumers import EventDicts, first_frames
from agents.web.presentation.live_run import LiveRunView
from chat import attachments, fragments, messages
from chat.errors import ClientIdConflict, MessageRejected
from chat.messages import message_actions, queue_actions, run_options
from chat.models import ChatSession, Message
from chat.sessions import rights, temporary

from . import run_news
from .incoming_frames import (
    FRAMES,
    BadFrame,
    CorrectFrame,
    DeleteFrame,
    EditFrame,
    MessageFrame,
    MessageIdFrame,
    RegenerateFrame,
    StopFrame,
    parse_frame,
)
from .page_state import MAX_PK, Conversation
from .presence_consumer import PresenceConsumer

logger = logging.getLogger(__name__)

FRAME_BURST = 60
FRAMES_PER_SECOND = 10
OPTIONS = set(run_options.FIELDS)
PAGE_NAME = re.compile(r"[a-z0-9]{1,40}")
# Events that also change the elements around the conversation.
CHROME_EVENTS = {EventType.RUN_FINISHED, EventType.RUN_PAUSED, EventType.APPROVAL_RESOLVED}


class ChatConsumer(PresenceConsumer):
    """One browser tab on one chat."""

    frames: ClassVar[TypeAdapter[Any]] = FRAMES  # that its page can send
    conversation_class: ClassVar[type[Conversation]] = Conversation
    is_late = False
    page = ""
    conversation: Conversation  # set once access is granted
    is_greeted = False
    new_run_frames = ""  # frames for a message sent on this page

    def find_topic(self) -> str | None:
        if not self.is_signed_in():
            return None
        pk = self.scope["url_route"]["kwargs"]["pk"]
        user = self.scope["user"]
        for self.session in _visible_sessions(user.pk, pk) if pk <= MAX_PK else ():
            self.may_write = rights.may_write(self.session, user)
            if self.topic:
                self.conversation.session = self.session
                self.conversation.may_write = self.may_write
            return self.session.topic
        if self.topic and ChatSession.objects.filter(pk=pk).exists():
            self.lost_access_code = close_codes.FORBIDDEN
        return None

    def begin(self) -> None:
        self.rate_limit = TokenBucket(FRAME_BURST, FRAMES_PER_SECOND)
        self.warning_limit = TokenBucket(1, 1)
        self.tab = secrets.token_hex(8)
        page = self.query_params.get("page", "")
        self.page = page if PAGE_NAME.fullmatch(page) else ""
        self.was_writing = self.may_write
        self.open_conversation()

    def open_conversation(self) -> None:
        """Prepare what the page shows of its chat."""
        last = parse_id(self.query_params.get("after")) or 0
        shown_digest = self.query_params.get("shown", "")[:40]
        self.conversation = self.conversation_class(
            self.session, self.scope["user"], self.may_write, last, shown_digest
        )
        self.topic = self.session.topic

    # The first frames

    async def send_initial(self) -> None:
        """Bring the page up to date; identical pages share the rendered frames."""
        user = self.scope["user"]
        opened = self.conversation
        was_away = "away" in self.query_params

        async def catch_up() -> tuple[Conversation, list[str]]:
            conversation = self.conversation_class(
                self.session, user, self.may_write, opened.last, opened.shown_digest
            )
            return conversation, await conversation.catch_up(was_away, self.preferences)

        if (linked := parse_id(self.query_params.get("leaf"))) is not None:
            async with self.lock:  # a message sent meanwhile belongs to this branch
                await message_actions.show_branch(self.session, user, linked)
        key = (
            self.session.pk,
            user.pk,
            opened.last,
            opened.shown_digest,
            was_away,
            self.may_write,
            self.preferences,
        )
        conversation, frames = await first_frames.run_shared(key, catch_up)
        async with self.lock:
            # Access may have been revoked while it waited for its turn.
            if await database.run(self.find_topic) is None:
                await self._end(self.lost_access_code)
            self.conversation.take(conversation)
            self.live_views = self.conversation.live_views
            await self._try_record(self._record_arrival)
            for frame in frames:
                await self.send(frame)
            self.is_greeted = True
        if self.session.is_temporary:
            self._spawn(temporary.hold_open(self.session))
        await self._update_presence()

    def _record_arrival(self) -> None:
        away_ms = parse_id(self.query_params.get("away"))
        if away_ms is not None:
            seconds = min(away_ms / 1000, disconnections.MAX_AWAY.total_seconds())
            run_ids = self._own_runs(self.live_views)
            disconnections.record_reconnect(run_ids, self.page, timedelta(seconds=seconds))
        elif run_ids := self._own_runs(self._live_runs()):
            disconnections.record_reopen(run_ids)

    async def on_disconnect(self) -> None:
        """Record the departure only while a run is live."""
        if run_ids := self._live_runs():
            await self._try_record(
                lambda: disconnections.record_disconnect(
                    self._own_runs(run_ids), self.page, self.code
                )
            )

    def _own_runs(self, run_ids: Iterable[int]) -> list[int]:
        """Return runs whose disconnections count: in a shared chat, only the user's own."""
        own_runs = Run.objects.filter(pk__in=run_ids, user=self.scope["user"].pk)
        is_discussed = self.conversation.is_discussed
        return list(own_runs.values_list("pk", flat=True)) if is_discussed else list(run_ids)

    def _live_runs(self) -> list[int]:
        return [run for run, live_view in self.live_views.items() if live_view.is_live]

    async def _try_record(self, record: Callable[[], None]) -> None:
        """Record a disconnection; a failure must not affect the page."""
        if not self.page:
            return
        try:
            await database.run(record)
        except OperationalError as error:
            logger.warning("Can't save a disconnection: %s", error)

    # Frames from the page

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Handle every frame; an invalid one must not close the socket."""
        if not self.topic:
            return  # refused, but its frames arrive until it knows
        if not self.rate_limit.allows():
            # One warning per second for all excess frames, to limit the cost.
            if self.warning_limit.allows():
                await self.send_error(_("Too many requests. Wait a moment and try again."))
            return
        try:
            frame = parse_frame(text_data, self.frames)
            await self.frame_handlers[frame.type](self, frame)
        except BadFrame as error:
            await self.send_error(error.args[0])
        except StopConsumer:
            raise
        except OperationalError as error:
            logger.warning("A frame arrived while the database was unavailable: %s", error)
            await self.send_error(self._in_language(errors.error_message, error))
        except Exception:
            logger.exception("Can't handle a frame.")
            await self.send_error(_("Something went wrong. Try again."))

    async def say(self, frame: MessageFrame) -> None:
        try:
            # A message is displayed once it is saved, before any events of its run.
            async with self.lock:
                try:
                    message = await messages.submit(
                        self.session,
                        self.scope["user"],
                        frame.text,
                        frame.client_id,
                        frame.agent,
                        options=frame.model_dump(include=OPTIONS, exclude_unset=True),
                        files=attachments.parse_ids(frame.files),
                        page=self,
                    )
                finally:
                    frames = self.new_run_frames
                    self.new_run_frames = ""
                    await self.send(frames)
        except MessageRejected as reason:
            percent = getattr(reason, "percent", 0)
            render_notice = partial(fragments.render_notice, percent=percent)
            await self.show(render_notice, self.rejection_text(reason))
            if isinstance(reason, ClientIdConflict):
                render_state = partial(fragments.render_composer, refused=frame.client_id)
                await self.show(render_state, self.session)
            return
        # A new message, once displayed, is its own acknowledgement.
        if not message.is_new or not self.is_greeted:
            render_state = partial(fragments.render_composer, acknowledged=frame.client_id)
            await self.show(render_state, self.session, execute=database.run_urgent)

    def rejection_text(self, reason: MessageRejected) -> LazyText:
        """Return why a message was rejected, as this page's user may know it."""
        text: str = reason.args[0]
        return text

    async def edit(self, frame: EditFrame) -> None:
        """Send an edited message as a new branch; if that fails, the editor stays open."""
        session, user = await database.run_urgent(self.recheck)
        sending = message_actions.edit(
            session, user, frame.message, frame.text, frame.client_id, frame.agent, page=self
        )
        try:
            await self._send_branch(sending)
        except MessageRejected as reason:
            await self.show(fragments.render_edit_problem, reason.args[0])

    async def regenerate(self, frame: RegenerateFrame) -> None:
        session, user = await database.run_urgent(self.recheck)
        sending = message_actions.regenerate(
            session, user, frame.message, frame.client_id, frame.agent, frame.model, page=self
        )
        try:
            await self._send_branch(sending)
        except MessageRejected as reason:
            await self.send_error(self.rejection_text(reason))

    async def _send_branch(self, sending: Awaitable[Message]) -> None:
        """Await a new branch and display it before any events of its run."""
        async with self.lock:
            try:
                message = await sending
            finally:
                frames = self.new_run_frames
                self.new_run_frames = ""
                await self.send(frames)
        if not message.is_new or not self.is_greeted:
            await self.show(self.conversation.new_message_frames)

    def on_saved(self, message: Message) -> None:
        """Render a message that is answered at once."""
        if message.is_new and not message.is_queued and self.is_greeted:
            with self.preferences.applied():
                self.new_run_frames = self.conversation.at_once(message)
        if self.new_run_frames:
            self.looked = time.monotonic()  # everything was just read

    async def correct(self, frame: CorrectFrame) -> None:
        """Save a corrected text; if that fails, the editor stays open."""
        session, user = await database.run_urgent(self.recheck)
        try:
            await message_actions.correct(session, user, frame.message, frame.text)
        except MessageRejected as reason:
            await self.show(fragments.render_edit_problem, reason.args[0])

    async def show_branch(self, frame: MessageIdFrame) -> None:
        """Switch the branch this user sees; reading is enough for that."""
        if await database.run_urgent(self.find_topic) is None:
            raise BadFrame(_("This chat no longer exists."))
        user = self.scope["user"]
        if not await message_actions.show_branch(self.session, user, frame.message):
            await self.send_error(_("This message no longer exists."))

    async def delete_message(self, frame: DeleteFrame) -> None:
        session, user = await database.run_urgent(self.recheck)
        below = frame.scope == "below"
        try:
            deleted = await message_actions.delete(session, user, frame.message, below=below)
        except MessageRejected as reason:
            await self.send_error(reason.args[0])
        else:
            await self.show(fragments.render_deleted, deleted.count, deleted.removal)

    async def stop(self, frame: StopFrame) -> None:
        def find_live_run() -> Run | None:
            session, _user = self.recheck()
            live_runs = Run.objects.live().filter(topic=session.topic)
            return None if frame.run is None else live_runs.filter(pk=frame.run).first()

        run = await database.run_urgent(find_live_run)
        if run is not None:
            await runs.stop(run)
        await self.show(fragments.render_composer, self.session, execute=database.run_urgent)

    async def send_now(self, frame: MessageIdFrame) -> None:
        session, user = await database.run_urgent(self.recheck)
        if not await queue_actions.send_now(session, user, frame.message):
            self.on_notification("queue.changed", {})  # it was just sent or withdrawn

    async def withdraw(self, frame: MessageIdFrame) -> None:
        """Withdraw a queued message and return its text to the composer."""
        session, user = await database.run_urgent(self.recheck)
        file_ids = await database.run(attachments.ids_of, user, frame.message)
        text = await queue_actions.withdraw(session, user, frame.message)
        if text is None:
            self.on_notification("queue.changed", {})
        else:
            render_state = partial(
                fragments.render_composer, returned=text, returned_files=file_ids
            )
            await self.show(render_state, self.session)

    def recheck(self) -> tuple[ChatSession, User]:
        """Check access for every frame, because it can be revoked at any time."""
        if self.find_topic() is None:
            raise BadFrame(_("This chat no longer exists."))
        if not self.may_write:
            raise BadFrame(rights.READ_ONLY_MESSAGE)
        return self.session, self.scope["user"]

    async def send_error(self, sentence: LazyText) -> None:
        await self.show(fragments.render_notice, sentence)

    frame_handlers: ClassVar[dict[str, Callable[[Any, Any], Awaitable[None]]]] = {
        "message": say,
        "edit": edit,
        "correct": correct,
        "regenerate": regenerate,
        "delete_message": delete_message,
        "send_now": send_now,
        "withdraw": withdraw,
        "show_branch": show_branch,
        "stop": stop,
    }

    # Notifications

    async def run_events(self, notification: dict[str, Any]) -> None:
        if self.is_late:
            self.is_late = False
            await self.send_error("")
        await super().run_events(notification)

    def event_frames(self, run: int, events: EventDicts) -> str:
        conversation = self.conversation
        is_known = run in self.live_views or run in conversation.hidden_runs
        frames = [] if is_known else [conversation.new_message_frames()]
        if run not in self.live_views:
            conversation.hidden_runs.add(run)  # on another branch, or above the page
        frames.append(super().event_frames(run, events))
        if {event["type"] for event in events} & CHROME_EVENTS:
            frames.append(conversation.chrome.run_status_frames(self.session))
        return "".join(frames)

    async def storage_late(self, notification: dict[str, Any]) -> None:
        self.is_late = True
        await self.send_error(
            _("Can't save right now. The run continues as soon as saving works again.")
        )

    def on_page(self, run: int) -> LiveRunView:
        return self.conversation.on_page(run)

    def missed_frames(self) -> str:
        conversation = self.conversation
        is_behind = conversation.chrome.is_behind(self.session)
        chrome_frames = conversation.chrome.changes(self.session) if is_behind else ""
        return super().missed_frames() + conversation.new_message_frames() + chrome_frames

    async def message_added(self, notification: dict[str, Any]) -> None:
        if notification["message"] > self.conversation.last:
            await self.show(self.conversation.new_message_frames, notification["run"])

    async def message_corrected(self, notification: dict[str, Any]) -> None:
        await self.show(self.conversation.corrected_frames, notification["message"])

    async def messages_deleted(self, notification: dict[str, Any]) -> None:
        await self.show(self.conversation.new_message_frames)

    async def branch_shown(self, notification: dict[str, Any]) -> None:
        """Follow the user, who switched branches here or in another tab."""
        if notification["user"] == self.scope["user"].pk:
            await self.show(self.conversation.new_message_frames)

    async def people_changed(self, notification: dict[str, Any]) -> None:
        """Apply changed access: close the page or update what its user can do."""
        await self.look_again(notification)
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
        render_row = partial(
            self.conversation.chrome.renamed_frames,
            self.session,
            notification["chat"],
            notification["title"],
        )
        # It reads no rows, so it needn't wait for the database thread.
        async with self.lock:
            await self.send(self._in_language(render_row))

    async def show_run_news(self, notification: dict[str, Any]) -> None:
        """Tell the page that a run of its user has ended or waits, here or in another chat."""
        await self.send(run_news.render(notification))
        if notification["chat"] != self.session.pk:  # its own row changes with the run's events
            await self.show(self.conversation.chrome.list_changes, self.session)

    async def queue_changed(self, notification: dict[str, Any]) -> None:
        await self.show(self.conversation.chrome.changes, self.session)

    handlers = PresenceConsumer.handlers | {
        "run.events": run_events,
        "storage.late": storage_late,
        "message.added": message_added,
        "message.corrected": message_corrected,
        "messages.deleted": messages_deleted,
        "branch.shown": branch_shown,
        "people.changed": people_changed,
        "chats.changed": chats_changed,
        "chat.named": chat_named,
        "run.news": show_run_news,
        "queue.changed": queue_changed,
    }


@compiled_query
def _visible_sessions(user: int, pk: int) -> QuerySet[ChatSession]:
    return ChatSession.objects.for_user(user).filter(pk=pk)
