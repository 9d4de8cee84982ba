"""One writer for this process: kept first, then told.

Runs hand over what happened and wait until it is in the database. While one batch is being
written the next one collects, so a hundred runs cost hardly more commits than one.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from django.db import transaction

from agents import leases, live, trace
from agents.engine import faults
from agents.engine.events import Event, Type
from agents.models import Run

logger = logging.getLogger(__name__)

MOST_UNDER_WAY = 8
# Kept, and nobody told yet.
POINTS = {
    Type.TOOL_RESPONSE: "P10",
    Type.APPROVAL_REQUESTED: "P11",
    Type.RUN_FINISHED: "P13",
}
SETTLED = {Type.TOOL_CALL, Type.RUN_PAUSED, Type.RUN_FINISHED}


class RunIsOver(Exception):
    """This run has ended, or is another process's; nothing can be added to it from here."""


@dataclass(slots=True)
class _Entry:
    """Something to keep: an event, or the end of a run that cannot end itself."""

    run: Run
    kept: asyncio.Future[None]
    event: Event | None = None
    ending: trace.Ending | None = None
    epoch: int | None = None
    told: list[Event] = field(default_factory=list)
    error: Exception | None = None


class Journal:
    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._over: set[int] = set()
        self._is_closed = False
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._task = asyncio.create_task(self._write())

    async def keep(self, run: Run, event: Event) -> None:
        """Come back once this is in the database."""
        await self.add(run, event)

    def add(self, run: Run, event: Event) -> asyncio.Future[None]:
        """Done once this is in the database, and everything that was added before it."""
        return self._add(_Entry(run, _future(), event=_storable(event)))

    async def close(self, run: Run, ending: trace.Ending, epoch: int | None = None) -> None:
        """End a run from outside: whatever is still open in it is closed.

        With an epoch, only while that lasts: a former owner cannot end what is another's now.
        """
        await self._add(_Entry(run, _future(), ending=ending, epoch=epoch))
        self._over.add(run.pk)

    def forget(self, run: Run) -> None:
        """Nobody is left who could add to this run."""
        self._over.discard(run.pk)

    async def renew(self, runs: Iterable[Run]) -> None:
        """Say that these are being worked on."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, leases.renew, list(runs))

    async def stop(self) -> None:
        """What was handed over is written; whoever comes later is told that it is over."""
        self._is_closed = True
        self._wake.set()
        await self._task
        self._thread.shutdown()

    def _add(self, entry: _Entry) -> asyncio.Future[None]:
        if self._is_closed or entry.run.pk in self._over:
            raise RunIsOver
        self._entries.append(entry)
        self._wake.set()
        return entry.kept

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._entries or not self._is_closed:
            await self._wake.wait()
            self._wake.clear()
            batch, self._entries = self._entries, []
            await loop.run_in_executor(self._thread, _commit, batch)
            for run, events in _by_run(batch):
                await tell(run, events)
            _settle(batch)


class Pages:
    """The journal of one run. What belongs together is on its way together.

    A few events may be under way while the run goes on, but it never acts on the world, nor
    ends, before all that it has said is kept.
    """

    def __init__(self, journal: Journal, run: Run) -> None:
        self.journal = journal
        self.run = run
        self._under_way: deque[asyncio.Future[None]] = deque()

    async def write(self, event: Event) -> None:
        self._under_way.append(self.journal.add(self.run, event))
        if event.type in SETTLED:
            await self.settle()
        elif len(self._under_way) > MOST_UNDER_WAY:
            await self._under_way.popleft()

    async def settle(self) -> None:
        while self._under_way:
            await self._under_way.popleft()

    def leave(self) -> None:
        """Nobody waits any more; what is under way is kept all the same."""
        for kept in self._under_way:
            kept.add_done_callback(_seen)


def _seen(kept: asyncio.Future[None]) -> None:
    error = None if kept.cancelled() else kept.exception()
    if error is not None and not isinstance(error, RunIsOver):
        logger.error("An event could not be kept.", exc_info=error)


async def tell(run: Run, events: list[Event]) -> None:
    """It is kept, so a layer that is out of order costs those who watch a reload, no more."""
    for event in events:
        faults.point(POINTS.get(event.type, ""))
    facts = [event.to_dict() for event in events]
    try:
        await live.publish(run.topic, "run.events", run=run.pk, events=facts)
    except Exception:
        logger.exception("Run %s could not be told of.", run.pk)


def _storable(event: Event) -> Event:
    """Without halves of characters: models and tools send them, no database takes them."""
    text = json.dumps(event.data, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return replace(event, data=json.loads(text.encode(errors="replace")))
    return event


def _commit(batch: list[_Entry]) -> None:
    """All in one transaction; if that fails, each alone, so that one spoils no other."""
    try:
        _commit_together(batch)
    except Exception:
        for entry in batch:
            entry.error, entry.told = None, []
            try:
                _commit_together([entry])
            except Exception as error:
                entry.error = error


def _commit_together(batch: list[_Entry]) -> None:
    events = [entry for entry in batch if entry.event is not None]
    with transaction.atomic():
        ours = leases.held([entry.run for entry in events]) if events else set()
        for entry in events:
            if entry.run.pk not in ours:
                entry.error = RunIsOver()
        events = [entry for entry in events if entry.error is None]
        trace.keep([(entry.run.pk, entry.event) for entry in events])
        for entry in batch:
            if entry.ending is not None:
                entry.told = trace.close(entry.run.pk, entry.ending, entry.epoch)
    for entry in events:
        entry.told = [entry.event]


def _by_run(batch: Iterable[_Entry]) -> Iterable[tuple[Run, list[Event]]]:
    runs: dict[int, tuple[Run, list[Event]]] = {}
    for entry in batch:
        if entry.told:
            runs.setdefault(entry.run.pk, (entry.run, []))[1].extend(entry.told)
    return runs.values()


def _settle(batch: Iterable[_Entry]) -> None:
    for entry in batch:
        if entry.kept.done():
            continue
        if entry.error is None:
            entry.kept.set_result(None)
        else:
            entry.kept.set_exception(entry.error)


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()
