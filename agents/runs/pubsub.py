"""Notifies subscribers: in this process directly, in others through the channel layer.

The layer may lose messages: they only make subscribers read the rows.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet

from agents.db import database
from agents.db.compiled_queries import compiled_query, read_instance
from agents.engine.events import DELTA_TYPES, EventType
from agents.models import Run, RunEvent

from .leases import PROCESS_TOKEN

logger = logging.getLogger(__name__)

IDLE_SECONDS = 5.0
RETRY_SECONDS = 1.0
PING_TIMEOUT_SECONDS = 1.0
SEND_TIMEOUT_SECONDS = 0.5
BACKOFF_SECONDS = 3.0
JOIN_TIMEOUT_SECONDS = 1.0
REFRESH_KIND = "look.again"
EVENTS_KIND = "run.events"
MAX_EVENTS = 500  # read at once

Subscriber = Callable[[str, dict[str, Any]], None]


def person_topic(pk: int) -> str:
    """Return the topic that tells a user's pages to check access again."""
    return f"person.{pk}"


async def publish(topic: str, kind: str, **facts: Any) -> None:
    """Publish to a topic; subscribers share these facts and must not change them."""
    if (local_topic := _topics.get(topic)) is not None:
        local_topic.tell(kind, facts)
    if _has_shared_layer():
        text = json.dumps(facts, ensure_ascii=False)
        message = {"type": "told", "by": PROCESS_TOKEN, "kind": kind, "facts": text}
        await _remote.tell(topic, message)


class _RemoteProcesses:
    """Sends to other processes.

    They read the rows anyway, so an unavailable layer must not delay anything here for more
    than a moment.
    """

    def __init__(self) -> None:
        self.away_until = 0.0

    async def tell(self, topic: str, message: dict[str, Any]) -> None:
        if time.monotonic() < self.away_until:
            return
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                await get_channel_layer().group_send(topic, message)
        except Exception as error:  # whatever the error, it isn't worth failing a run
            self.away_until = time.monotonic() + BACKOFF_SECONDS
            logger.warning("Can't publish to other processes: %r", error)


_remote = _RemoteProcesses()


@asynccontextmanager
async def subscribe(topic: str, subscriber: Subscriber) -> AsyncIterator[None]:
    """Call `subscriber` with everything published to the topic, here or elsewhere."""
    local_topic = _topics.setdefault(topic, _Topic(topic))
    local_topic.listeners.append(subscriber)
    try:
        if _has_shared_layer():
            await local_topic.connect()
        yield
    finally:
        local_topic.listeners.remove(subscriber)
        if not local_topic.listeners:
            _topics.pop(topic, None)
            await local_topic.disconnect()


class _Topic:
    """The subscribers of a topic in this process, with one connection to other processes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.listeners: list[Subscriber] = []
        self.listen_task: asyncio.Task[None] | None = None
        self.joined = asyncio.Event()

    def tell(self, kind: str, facts: dict[str, Any]) -> None:
        for subscriber in tuple(self.listeners):
            subscriber(kind, facts)

    async def connect(self) -> None:
        """Wait until messages from other processes arrive here, or will soon."""
        self.listen_task = self.listen_task or asyncio.create_task(self._listen())
        try:
            async with asyncio.timeout(JOIN_TIMEOUT_SECONDS):
                await self.joined.wait()
        except TimeoutError:
            self.joined.set()  # late; subscribers then read the rows again

    async def disconnect(self) -> None:
        if self.listen_task is not None:
            self.listen_task.cancel()
            await asyncio.wait([self.listen_task], timeout=JOIN_TIMEOUT_SECONDS)

    async def _listen(self) -> None:
        while True:
            try:
                await self._receive_remote()
            except Exception:  # it is retried, and the rows can be read
                logger.exception(
                    "Can't receive messages from other processes on %s.", self.name
                )
                self.joined.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def _receive_remote(self) -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        try:
            await layer.group_add(self.name, channel)
            if self.joined.is_set():
                self.tell(REFRESH_KIND, {})  # messages may have been missed meanwhile
            self.joined.set()
            while True:
                message = await layer.receive(channel)
                if message["by"] != PROCESS_TOKEN:  # own messages were delivered directly
                    self.tell(message["kind"], json.loads(message["facts"]))
        finally:
            await layer.group_discard(self.name, channel)


_topics: dict[str, _Topic] = {}


def _has_shared_layer() -> bool:
    """Whether the channel layer reaches other processes; one in memory doesn't."""
    return not isinstance(get_channel_layer(), InMemoryChannelLayer)


async def ping() -> float:
    """Return the channel layer's round-trip time in seconds; raise if it fails."""
    layer = get_channel_layer()
    began = time.monotonic()
    async with asyncio.timeout(PING_TIMEOUT_SECONDS):
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "ping"})
        await layer.receive(channel)
    took = time.monotonic() - began
    # The layer releases a channel only when a receive is cancelled.
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await layer.receive(channel)
    return took


async def events(
    run: Run, seq: int = 0, idle_seconds: float | None = None
) -> AsyncGenerator[RunEvent | None, None]:
    """Yield a run's saved events after `seq`; None when there were none for a while.

    Streamed text that was published is not read from the database again.
    """
    inbox = _Inbox(run.pk)
    patience = idle_seconds or IDLE_SECONDS
    async with subscribe(run.topic, inbox.receive):
        while True:
            inbox.empty()
            batch = await database.run(_unread, run.pk, seq)
            for event in batch or ():
                yield event
                seq = event.seq
            if batch is None:
                return
            # After the last event nothing is published that would wake this reader.
            if len(batch) == MAX_EVENTS or (batch and batch[-1].type == EventType.RUN_FINISHED):
                continue
            try:
                while (deltas := await inbox.next_deltas(seq, patience)) is not None:
                    for value in deltas:
                        yield _row(run, value)
                        seq = value["seq"]
            except TimeoutError:
                yield None


def _unread(run: int, seq: int) -> list[RunEvent] | None:
    """Return a run's events after this number; None if it has ended and there are no more."""
    if unread := _events_after(run, seq):
        return unread
    if any(status in Run.LIVE for status in _status(run)):
        return []
    # The last events are saved before the run ends.
    return _events_after(run, seq) or None


@compiled_query
def _events_after(run: int, seq: int) -> QuerySet[RunEvent]:
    return RunEvent.objects.filter(run=run, seq__gt=seq).order_by("seq")[:MAX_EVENTS]


@compiled_query
def _status(run: int) -> QuerySet[Run, str]:
    return Run.objects.filter(pk=run).values_list("status", flat=True)


class _Inbox:
    """What was published about one run and not yet yielded."""

    def __init__(self, run: int) -> None:
        self.run = run
        self._events: list[dict[str, Any]] = []
        self._is_current = True  # whether the events are all that was published
        self._arrived = asyncio.Event()

    def receive(self, kind: str, facts: dict[str, Any]) -> None:
        if kind == EVENTS_KIND and facts["run"] == self.run:
            self._events += facts["events"]
            # A slow reader reads the rest from the database.
            self._is_current &= len(self._events) <= MAX_EVENTS
        else:
            self._is_current = False
        if not self._is_current:
            self._events = []
        self._arrived.set()

    def empty(self) -> None:
        self._events = []
        self._is_current = True
        self._arrived.clear()

    async def next_deltas(self, seq: int, seconds: float) -> list[dict[str, Any]] | None:
        """Wait for the text that follows on this event; None if rows have to be read.

        Raises TimeoutError if nothing was published for so long.
        """
        # A timer that wakes: asyncio.timeout takes several times as long for each delta.
        timer = asyncio.get_running_loop().call_later(seconds, self._arrived.set)
        try:
            await self._arrived.wait()
        finally:
            timer.cancel()
        self._arrived.clear()
        if self._is_current and not self._events:
            raise TimeoutError
        arrived = [event for event in self._events if event["seq"] > seq]
        self._events = []
        is_next = self._is_current and all(
            event["seq"] == number and event["type"] in DELTA_TYPES
            for number, event in enumerate(arrived, seq + 1)
        )
        return arrived if is_next else None


def _row(run: Run, value: Mapping[str, Any]) -> RunEvent:
    """Return an event as it was published; nobody may change its data."""
    columns = {**value, "run_id": run.pk, "time": datetime.fromisoformat(value["time"])}
    return read_instance(RunEvent, DEFAULT_DB_ALIAS, columns.items())
