"""A tool call that runs: what it reports becomes events of its step."""

import asyncio
import threading
from collections.abc import Callable
from math import isfinite
from typing import Any

from agents.engine.call_context import CallContext, current_run
from agents.engine.events import Event, EventFactory, EventType, StatusKind
from agents.engine.privacy.secrets import mask_secrets

# Progress is sent about four times a second, and less often in a long call: every report is
# saved and rendered.
PROGRESS_SECONDS, LONG_PROGRESS_SECONDS = 0.25, 1.0
LONG_CALL_SECONDS = 60.0
MAX_MESSAGE_CHARS = 300

Report = Callable[[EventFactory, int], Event]


class LiveCall(CallContext):
    """The context of one call in a run: collects reports until the call's step yields them."""

    def __init__(self, tool: str) -> None:
        run = current_run()
        self.user_id, self.chat_id = run.user_id, run.chat_id
        self._tool = tool
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._began = self._loop.time()
        self._reports: list[Report] = []
        self._progress: dict[str, Any] = {}
        self._is_progress_new = False
        self._progress_at = 0.0  # when the next progress may be sent
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None

    def report_progress(
        self, progress: float, total: float | None = None, message: str = ""
    ) -> None:
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.report_progress, progress, total, message)
            return
        self.extend_timeout()
        if (facts := _progress_facts(progress, total, message)) in (None, self._progress):
            return
        self._progress, self._is_progress_new = facts or {}, True
        self._wake_for_progress()

    def report_retry(self, message: str, attempt: int, seconds: float) -> None:
        def report(emit: EventFactory, step: int) -> Event:
            return emit(
                EventType.STATUS,
                kind=StatusKind.RETRY,
                tool=self._tool,
                message=message,
                seconds=round(seconds, 1),
                attempt=attempt,
                step=step,
            )

        self._add(report)

    async def wait(self, call: "asyncio.Task[Any]") -> bool:
        """Wait until there are reports or the call has ended; return whether it has."""
        if not call.done() and not self._has_news:
            self._waiter = self._loop.create_future()
            call.add_done_callback(self._wake)
            try:
                await self._waiter
            finally:
                call.remove_done_callback(self._wake)
                self._waiter = None
        return call.done()

    def take_events(self, emit: EventFactory, step: int, *, is_over: bool) -> list[Event]:
        """Return the events to yield now; when the call is over, all that are left."""
        if not self._reports and not self._is_progress_new:
            return []
        events = [report(emit, step) for report in self._reports]
        self._reports.clear()
        if self._is_progress_new and (is_over or self._is_progress_due):
            events.append(self._progress_event(emit, step))
        return events

    @property
    def _has_news(self) -> bool:
        return bool(self._reports) or (self._is_progress_new and self._is_progress_due)

    @property
    def _is_progress_due(self) -> bool:
        return self._loop.time() >= self._progress_at

    def _progress_event(self, emit: EventFactory, step: int) -> Event:
        now = self._loop.time()
        is_long = now - self._began > LONG_CALL_SECONDS
        self._is_progress_new = False
        self._progress_at = now + (LONG_PROGRESS_SECONDS if is_long else PROGRESS_SECONDS)
        return emit(
            EventType.STATUS,
            kind=StatusKind.TOOL_PROGRESS,
            tool=self._tool,
            **self._progress,
            step=step,
        )

    def _wake_for_progress(self) -> None:
        if self._is_progress_due:
            self._wake()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._progress_at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()

    def _add(self, report: Report) -> None:
        self._reports.append(report)
        self._wake()

    def _wake(self, _call: object = None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _progress_facts(
    progress: float, total: float | None, message: str
) -> dict[str, Any] | None:
    """Return the progress as it is saved, or None if it isn't a number."""
    if not isfinite(progress):
        return None
    has_total = total is not None and isfinite(total) and total > 0
    text = " ".join(message[: 2 * MAX_MESSAGE_CHARS].split())
    return {
        "progress": max(0.0, progress),
        "total": total if has_total else None,
        "message": mask_secrets(text)[:MAX_MESSAGE_CHARS],
    }
