"""The event writer of this process: saves first, then publishes.

Runs pass it their events and wait until they are committed. While one batch is written, the
next one collects, so a hundred runs cost hardly more commits than one.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, repeat
from time import sleep
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection, connections, transaction

from agents.db.sanitize import sanitize_event
from agents.engine import fault_injection
from agents.engine.events import Event, EventType
from agents.models import Run, RunEvent

from . import event_store, leases, pubsub

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Argument = TypeVar("Argument")
EventListener = Callable[[Run, list[Event]], None]

MAX_PENDING = 8
LATE_SECONDS = 10.0
# The database is restarting, locked or full: retry for about 30 s.
DATABASE_ERRORS = (OperationalError, InterfaceError)
RETRY_DELAYS_SECONDS = (0.05, 0.1, 0.2, 0.5)
RETRY_SECONDS = 30.0
# Per run that writes, up to the maximum.
GATHER_SECONDS = 0.0002
MAX_GATHER_SECONDS = 0.01
REST_SECONDS = 0.001
MAX_REST_SECONDS = 0.03
# Committed, but not published yet.
FAULT_POINTS = {
    EventType.TOOL_RESPONSE: "after_tool_response_save",
    EventType.APPROVAL_REQUESTED: "after_approval_request_save",
    EventType.RUN_FINISHED: "after_run_finish_save",
}
FLUSH_TYPES = {EventType.TOOL_CALL, EventType.RUN_PAUSED, EventType.RUN_FINISHED}


# Other receivers of saved events, such as exporters: called at once and never awaited.
readers: list[EventListener] = []


class RunIsOver(Exception):
    """Raised when a run has ended or belongs to another process."""


@dataclass(slots=True)
class _Entry:
    """An entry to save: an event, or the end of a run that can't end itself."""

    run: Run
    saved: asyncio.Future[None]
    pk: int = field(init=False)  # the run's, read more often than anything else
    event: Event | None = None
    ending: event_store.Ending | None = None
    epoch: int | None = None
    saved_events: list[Event] = field(default_factory=list)
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.pk = self.run.pk


class EventWriter:
    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._over: set[int] = set()
        self._is_closed = False
        self._waiting_since: float | None = None
        self._longest = 0.0
        self._active_runs = 0
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="event-writer")
        self._task = asyncio.create_task(self._write())

    def add(self, run: Run, event: Event) -> asyncio.Future[None]:
        """Return a future that is done once this and everything before it is committed."""
        return self._add(_Entry(run, self._loop.create_future(), event=sanitize_event(event)))

    async def close(
        self, run: Run, ending: event_store.Ending, epoch: int | None = None
    ) -> None:
        """End a run from outside and close everything open in it.

        With an epoch, only while the run has it: a former owner can't end another's run.
        """
        await self._add(_Entry(run, self._loop.create_future(), ending=ending, epoch=epoch))
        self._over.add(run.pk)

    def forget(self, run: Run) -> None:
        """Forget a run that nothing can be added to any more."""
        self._over.discard(run.pk)

    def lag(self) -> float:
        """Return the longest wait for a commit since the last call; thread-safe."""
        since = self._waiting_since
        waiting = 0.0 if since is None else time.monotonic() - since
        longest = max(self._longest, waiting)
        self._longest = 0.0
        return longest

    async def ask(self, query: Callable[[Argument], Result], argument: Argument) -> Result:
        """Run a query between two batches, e.g. about the runs of this process."""
        return await self._loop.run_in_executor(self._thread, _run_query, query, argument)

    async def stop(self) -> None:
        """Write everything added so far, and reject what comes later."""
        self._is_closed = True
        self._wake.set()
        await self._task
        self._thread.submit(connections.close_all)
        self._thread.shutdown()

    def _add(self, entry: _Entry) -> asyncio.Future[None]:
        if self._is_closed or entry.pk in self._over:
            raise RunIsOver
        self._entries.append(entry)
        self._waiting_since = self._waiting_since or time.monotonic()
        self._wake.set()
        return entry.saved

    async def _write(self) -> None:
        while self._entries or not self._is_closed:
            await self._wake.wait()
            # Streams share a clock: when one run has text, the others are about to.
            await asyncio.sleep(min(MAX_GATHER_SECONDS, GATHER_SECONDS * self._active_runs))
            self._wake.clear()
            batch = self._entries
            self._entries = []
            if not batch:
                continue  # woken only to stop
            started = time.monotonic()
            late = self._loop.call_later(LATE_SECONDS, self._on_late, batch)
            await self._loop.run_in_executor(self._thread, _commit, batch)
            late.cancel()
            if self._waiting_since is not None:
                self._longest = max(self._longest, time.monotonic() - self._waiting_since)
            self._waiting_since = started if self._entries else None  # they came after it
            saved_by_run: dict[int, tuple[Run, list[Event]]] = {}
            for entry in batch:
                if entry.saved_events:
                    _run, events = saved_by_run.setdefault(entry.pk, (entry.run, []))
                    events.extend(entry.saved_events)
            for run, events in saved_by_run.values():
                await publish(run, events)
            for entry in batch:
                if entry.saved.done():
                    continue
                if entry.error is None:
                    entry.saved.set_result(None)
                else:
                    entry.saved.set_exception(entry.error)
            # The more runs write, the longer the pause: a commit costs the same for any number
            # of runs, and those that wrote recently will write again.
            self._active_runs = max(self._active_runs // 2, len({entry.pk for entry in batch}))
            await asyncio.sleep(min(MAX_REST_SECONDS, REST_SECONDS * self._active_runs))

    def _on_late(self, batch: list[_Entry]) -> None:
        """Tell the pages that the database isn't responding."""
        self._publish_task = asyncio.create_task(
            _publish_late({entry.run.topic for entry in batch})
        )


class RunEventBuffer:
    """Buffers the events of one run, so that related ones are written together.

    A few events may be in flight while the run continues, but it never calls a tool, or ends,
    before all its events are saved.
    """

    def __init__(self, writer: EventWriter, run: Run) -> None:
        self.writer = writer
        self.run = run
        self._under_way: deque[asyncio.Future[None]] = deque()

    async def write(self, event: Event) -> None:
        self._under_way.append(self.writer.add(self.run, event))
        if event.type in FLUSH_TYPES:
            await self.flush()
        elif len(self._under_way) > MAX_PENDING:
            await self._under_way.popleft()

    async def flush(self) -> None:
        while self._under_way:
            await self._under_way.popleft()

    def leave(self) -> None:
        """Stop waiting; events in flight are saved anyway."""
        for future in self._under_way:
            future.add_done_callback(_log_failure)


def _log_failure(future: asyncio.Future[None]) -> None:
    error = None if future.cancelled() else future.exception()
    if error is not None and not isinstance(error, RunIsOver):
        logger.error("Can't save an event.", exc_info=error)


async def _publish_late(topics: set[str]) -> None:
    for topic in topics:
        await pubsub.publish(topic, "storage.late")


async def publish(run: Run, events: list[Event]) -> None:
    for event in events:
        fault_injection.point(FAULT_POINTS.get(event.type, ""))
    for listener in readers:
        listener(run, events)
    payload = [event.to_dict() for event in events]
    await pubsub.publish(run.topic, pubsub.EVENTS_KIND, run=run.pk, events=payload)


def _commit(batch: list[_Entry]) -> None:
    """Commit all in one transaction; if that fails, each on its own, to isolate the failure."""
    try:
        _commit_with_retry(batch)
    except DATABASE_ERRORS as error:
        for entry in batch:
            entry.error = error
    except Exception:
        for entry in batch:
            try:
                _commit_with_retry([entry])
            except Exception as error:
                entry.error = error


def _commit_with_retry(batch: list[_Entry]) -> None:
    """Retry while the database is unavailable, up to the time limit."""
    end = time.monotonic() + RETRY_SECONDS
    for attempt, pause in enumerate(chain(RETRY_DELAYS_SECONDS, repeat(1.0))):
        for entry in batch:
            entry.error = None
            entry.saved_events = []
        try:
            return _commit_batch(batch, is_again=attempt > 0)
        except DATABASE_ERRORS as error:
            connection.close()
            if time.monotonic() + pause > end:
                raise
            logger.warning("The database is unavailable: %s", error)
            sleep(pause)


def _run_query(query: Callable[[Argument], Result], argument: Argument) -> Result:
    try:
        return query(argument)
    except DATABASE_ERRORS:
        connection.close()  # the next query opens a new connection
        raise


def _commit_batch(batch: list[_Entry], is_again: bool) -> None:
    events = [entry for entry in batch if entry.event is not None]
    with transaction.atomic():
        # The last attempt may have succeeded with only its confirmation lost.
        already_saved = [entry for entry in events if is_again and _is_saved(entry)]
        events = [entry for entry in events if entry not in already_saved]
        epochs = leases.lock_epochs({entry.pk for entry in events}) if events else {}
        for entry in events:
            if epochs.get(entry.pk) != entry.run.epoch:
                entry.error = RunIsOver()
        events = [entry for entry in events if entry.error is None]
        event_store.save([(entry.pk, entry.event) for entry in events if entry.event])
        for entry in batch:
            if entry.ending is not None:
                entry.saved_events = event_store.close(entry.pk, entry.ending, entry.epoch)
    for entry in [*already_saved, *events]:
        entry.saved_events = [entry.event] if entry.event else []


def _is_saved(entry: _Entry) -> bool:
    event = entry.event
    if event is None:
        return False
    columns: dict[str, Any] = {"seq": event.seq, "type": event.type.value, "time": event.time}
    return RunEvent.objects.filter(run=entry.run, **columns).exists()
