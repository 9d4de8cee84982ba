"""A socket that watches runs. It never awaits one: it is notified and sends frames."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, TypeVar
from urllib.parse import parse_qsl

from autobahn.exception import Disconnected
from channels.consumer import AsyncConsumer, get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.utils import timezone

from agents.access import authentication
from agents.access.authentication import SessionStore
from agents.access.requests import Receive, Scope, Send
from agents.db import database
from agents.engine.concurrency import MAX_INLINE_CHARS
from agents.models import Run
from agents.runs import close_codes, pubsub
from agents.runs.observability import process_status

from .. import preferences
from ..presentation.live_run import LiveRunView
from . import connections, first_frames, frames
from .language import page_language

LIVE_POLL_SECONDS = 5
IDLE_POLL_SECONDS = 300
# After this much silence, access is checked again before anything is sent.
RECHECK_SECONDS = 30
MAX_QUEUED = 1000
DELIVERY_GRACE = timedelta(seconds=0.5)  # newer events may still be in delivery
# Handled by reading the rows, so once is enough.
REPEATED_KINDS = {pubsub.REFRESH_KIND, "document.changed"}

EventDicts = Sequence[dict[str, Any]]
Frames = str | list[str] | None
Notification = tuple[str, dict[str, Any]]
Handlers = dict[str, Callable[[Any, dict[str, Any]], Awaitable[None]]]
Result = TypeVar("Result")


class LiveConsumer(AsyncWebsocketConsumer):
    """Sends live runs to one page, each from that page's position.

    The topic is joined before the rows are read, and every batch has its event numbers: known
    events are skipped, and after a gap the rows are read again.
    """

    code = 1006  # close code, abnormal unless one is received
    language: str | None = None
    preferences = preferences.Preferences()
    lost_access_code = close_codes.NOT_FOUND  # close code for a page that lost access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the socket; if one part ends, all of it ends.

        Channels would wait for its channel layer too, with two tasks per message; here
        notifications come through agents.runs.pubsub.
        """
        self.scope = scope
        self.base_send = send
        self.notifications: list[Notification] = []
        self.woken = asyncio.Event()
        try:
            with process_status.count_socket():
                async with asyncio.TaskGroup() as self.tasks, AsyncExitStack() as self.stack:
                    with suppress(StopConsumer):
                        while True:
                            await self.dispatch(await receive())
        except* StopConsumer:
            pass
        await self.on_disconnect()

    async def dispatch(self, message: MutableMapping[str, Any]) -> None:
        """Dispatch directly; Channels would wait for the database thread first."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        self.live_views: dict[int, LiveRunView] = {}
        self.looked = time.monotonic()
        self.lock = asyncio.Lock()
        query = self.scope["query_string"].decode("latin-1")
        self.query_params = dict(parse_qsl(query, keep_blank_values=True))
        self.language = page_language(self.scope, self.query_params.get("language", ""))
        await self.accept()
        if first_frames.is_full():
            await self.close(close_codes.TRY_AGAIN_LATER)
            return
        topic = await database.run_deferred(self.find_topic)
        if topic is None:
            await self.close(self.lost_access_code)
            return
        page = self.query_params.get("page", "")
        name = f"{self.scope['path']} {page}" if page else secrets.token_hex(8)
        tracked = connections.track_socket(self.owner(), name, self._on_replaced)
        try:
            self.stack.enter_context(tracked)
        except connections.TooManySockets:
            await self.close(close_codes.TOO_MANY)
            return
        self.begin()
        for followed_topic in self.followed_topics(topic):
            await self.follow(followed_topic)
        self._spawn(self._watch())

    async def follow(self, topic: str) -> None:
        """Be notified of what is published to a topic, for as long as the socket is open."""
        await self.stack.enter_async_context(pubsub.subscribe(topic, self.on_notification))

    def owner(self) -> int | str:
        """Return whose sockets are limited together."""
        user_pk: int = self.scope["user"].pk
        return user_pk

    def followed_topics(self, topic: str) -> tuple[str, ...]:
        """Return the topics that the page hears of, besides its own that of its user."""
        return (topic, pubsub.person_topic(self.scope["user"].pk))

    def find_topic(self) -> str | None:
        """Return the topic to follow, or None if the user can see nothing."""
        return None

    def is_signed_in(self) -> bool:
        """Whether the user is still signed in: signing out ends what open tabs can do."""
        self.login = SessionStore(self.scope["cookies"].get(settings.SESSION_COOKIE_NAME))
        self.scope["user"] = user = authentication.session_user(self.login)
        of_user = preferences.of_user(user, self.scope["cookies"])
        # The page keeps its language, even if the user has changed it elsewhere since.
        self.preferences = replace(of_user, language=self.language)
        return self.scope["user"].is_authenticated

    def begin(self) -> None:
        """Prepare the page once access is granted."""

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task alongside the socket, for as long as it is open."""
        task = self.tasks.create_task(coroutine)
        self.stack.callback(task.cancel)
        return task

    def on_notification(self, kind: str, facts: dict[str, Any]) -> None:
        """Queue a notification; a page too far behind misses some and reads the rows again."""
        if len(self.notifications) < MAX_QUEUED:
            self.notifications.append((kind, facts))
            self.woken.set()

    async def _watch(self) -> None:
        """Send the initial frames, then handle notifications one at a time, in order."""
        try:
            await self.send_initial()
        except first_frames.TooManyWaiting:
            await self._end(close_codes.TRY_AGAIN_LATER)
        self._spawn(self._poll_loop())
        while True:
            await self.woken.wait()
            self.woken.clear()
            notifications = self.notifications
            self.notifications = []
            if time.monotonic() - self.looked > RECHECK_SECONDS:
                await self.look_again({})
            for kind, facts in coalesce(notifications):
                if (handler := self.handlers.get(kind)) is not None:
                    await handler(self, facts)

    async def send_initial(self) -> None:
        """Send the initial frames after connecting."""

    async def run_events(self, notification: dict[str, Any]) -> None:
        run = notification["run"]
        events = notification["events"]
        live_view = self.live_views.get(run)
        if live_view is None or not live_view.are_deltas(events):
            await self.show(self.event_frames, run, events)
        elif live_view.can_render_within(MAX_INLINE_CHARS, events):
            await self.send(live_view.delta_frames(events))  # streamed text needs no row
        else:
            async with self.lock:
                await self.send(await asyncio.to_thread(live_view.delta_frames, events))

    def event_frames(self, run: int, events: EventDicts) -> str:
        """Return frames for events that need rows."""
        live_view = self.live_views.get(run)
        if live_view is None or events[-1]["seq"] <= live_view.seq:
            return ""
        try:
            is_next = live_view.is_contiguous(events)
            return live_view.changes(events) if is_next else live_view.snapshot()
        except Run.DoesNotExist:
            del self.live_views[run]
            return ""

    async def run_judged(self, notification: dict[str, Any]) -> None:
        """Update a rating or correction."""
        if (live_view := self.on_page(notification["run"])) is not None:
            await self.show(live_view.feedback_frames)

    async def run_remembered(self, notification: dict[str, Any]) -> None:
        """Update what a run saved to memory, which its user has changed on some page."""
        if (live_view := self.on_page(notification["run"])) is not None:
            await self.show(live_view.memory_frames)

    async def run_commented(self, notification: dict[str, Any]) -> None:
        """Update the comments on a step."""
        if (live_view := self.on_page(notification["run"])) is not None:
            await self.show(live_view.comment_frames, notification["step"])

    def on_page(self, run: int) -> LiveRunView | None:
        """Return a run on this page; others of its topic may not be visible to the user."""
        return self.live_views.get(run)

    async def look_again(self, notification: dict[str, Any]) -> None:
        """Read the rows without a notification, in case the last one was lost.

        Also check access again: a user who signed out gets no more frames.
        """
        self.looked = time.monotonic()
        await self.show_if_visible(self.missed_frames)

    def missed_frames(self) -> str:
        """Return frames for events whose notification is overdue."""
        due_before = timezone.now() - DELIVERY_GRACE
        live_views = [
            live_view for live_view in list(self.live_views.values()) if live_view.is_live
        ]
        return "".join(
            live_view.snapshot()
            if live_view.is_behind(due_before)
            else live_view.deferred_plan()
            for live_view in live_views
        )

    # Each kind of notification that the page handles; it ignores all others.
    handlers: ClassVar[Handlers] = {
        "run.events": run_events,
        "run.judged": run_judged,
        "run.remembered": run_remembered,
        "run.commented": run_commented,
        "messages.deleted": look_again,  # the run of this page may be deleted
        "people.changed": look_again,  # members or permissions
        pubsub.REFRESH_KIND: look_again,
    }

    async def _poll_loop(self) -> None:
        """Queue a periodic check, so that it waits its turn like everything else."""
        while True:
            due = self.looked + LIVE_POLL_SECONDS - time.monotonic()
            await asyncio.sleep(due if due > 0 else LIVE_POLL_SECONDS)
            # Checked after the sleep: a run may have started meanwhile.
            longest = LIVE_POLL_SECONDS if self.has_live() else IDLE_POLL_SECONDS
            if time.monotonic() - self.looked >= longest:
                self.on_notification(pubsub.REFRESH_KIND, {})

    def has_live(self) -> bool:
        """Whether something on the page is expected to change soon."""
        return any(live_view.is_live for live_view in self.live_views.values())

    async def show_if_visible(
        self,
        render: Callable[[], str],
        execute: Callable[..., Awaitable[Any]] = database.run,
    ) -> None:
        """Show frames, or close the socket if access was revoked meanwhile."""

        def render_if_visible() -> str | None:
            return None if self.find_topic() is None else render()

        if await self.show(render_if_visible, execute=execute) is None:
            await self._end(self.lost_access_code)

    async def show(
        self,
        render: Callable[..., Frames],
        *args: Any,
        execute: Callable[..., Awaitable[Any]] = database.run,
    ) -> Frames:
        """Render and send in turn, so that frames are sent in the order they were rendered."""
        async with self.lock:
            rendered: Frames = await execute(self._in_language, render, *args)
            for frame in [rendered] if isinstance(rendered, str) else rendered or ():
                await self.send(frame)
        return rendered

    def _in_language(self, render: Callable[..., Result], *args: Any) -> Result:
        with self.preferences.applied():
            return render(*args)

    async def send(self, html: str) -> None:  # type: ignore[override]  # takes HTML
        """Send frames; a page that just disconnected isn't an error."""
        if not html:
            return
        try:
            for frame in frames.split_frames(html, self.language):
                await AsyncConsumer.send(self, {"type": "websocket.send", "text": frame})
        except Disconnected:
            raise StopConsumer from None

    def _on_replaced(self) -> None:
        ending = self._end(close_codes.REPLACED)
        try:
            self._spawn(ending)
        except RuntimeError:  # already closing, and its slot is free
            ending.close()

    async def _end(self, code: int) -> None:
        await self.close(code)
        raise StopConsumer

    async def disconnect(self, code: int) -> None:
        self.code = code

    async def on_disconnect(self) -> None:
        """Handle the disconnect; not called when the server shuts down."""


def coalesce(notifications: list[Notification]) -> list[Notification]:
    """Merge notifications of the same run, so that a slow page catches up.

    A refresh runs once and last; earlier, it would find the page behind the events here.
    """
    if len(notifications) == 1:
        return notifications
    joined: list[Notification] = []
    for kind, facts in sorted(
        notifications, key=lambda notification: notification[0] == pubsub.REFRESH_KIND
    ):
        last_kind, last_facts = joined[-1] if joined else ("", {})
        if kind == last_kind == "run.events" and facts["run"] == last_facts["run"]:
            joined[-1] = (
                kind,
                {**last_facts, "events": last_facts["events"] + facts["events"]},
            )
        elif not (kind == last_kind and kind in REPEATED_KINDS):
            joined.append((kind, facts))
    return joined
