"""A model's limits over all processes, for the engine.

Each process watches a model's line with one task, as long as one of its calls waits there, and
extends what it holds with another. Both belong to an event loop.
"""

import asyncio
import logging
import secrets
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic
from weakref import WeakKeyDictionary

from django.db import Error as DatabaseProblem

from agents.db import database
from agents.engine.errors import ModelBusy
from agents.engine.resilience import LimitKind, Limits, QueuePlace
from agents.engine.sentences import Sentence as _

from . import slots
from .slots import QueueState

logger = logging.getLogger(__name__)

FIRST_SECONDS = 0.15  # between looks while one of ours is among the next
OTHERS_SECONDS = 0.5
MIN_SECONDS = 0.02


class SharedRateLimiter:
    """Admits calls in order of arrival, whichever process they come from."""

    def __init__(self, label: str, limits: Limits) -> None:
        self.label = label
        self.limits = limits

    @asynccontextmanager
    async def request(self, model: str) -> AsyncIterator["SharedRequest"]:
        slots_of_loop = _held.setdefault(asyncio.get_running_loop(), HeldSlots())
        request = SharedRequest(slots_of_loop, self.label, model, self.limits)
        slots_of_loop.add(request)
        try:
            try:
                queue = await database.run(slots.join, request.key, self.label, self.limits)
            except DatabaseProblem as error:
                raise ModelBusy(
                    _("The queue of %(model)s can't be read right now.", model=model)
                ) from error
            request.apply(queue)
            yield request
        finally:
            # Shielded, because a cancelled run frees its slot, too. The database thread makes
            # this call after the one above.
            await asyncio.shield(slots_of_loop.leave(request))


class SharedRequest:
    """A call in a model's line, or with its slot."""

    def __init__(
        self, slots_of_loop: "HeldSlots", label: str, model: str, limits: Limits
    ) -> None:
        self.held = slots_of_loop
        self.label = label
        self.model = model
        self.limits = limits
        self.key = secrets.token_hex(16)
        self.is_running = False
        self.place = 0
        self.limit: LimitKind = "concurrency"
        self.tokens = 0
        self.changed = asyncio.Event()

    async def places(self) -> AsyncGenerator[QueuePlace, None]:
        deadline = monotonic() + self.limits.patience
        last = None
        try:
            while not self.is_running:
                queue_place = QueuePlace(self.place, self.limit)
                if queue_place.is_news(last):
                    last = queue_place
                    yield queue_place
                    continue
                self.held.watch(self)
                seconds_left = deadline - monotonic()
                if seconds_left <= 0:
                    raise self.limits.busy(self.model, self.limit)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), seconds_left)
                self.changed.clear()
        finally:
            self.held.unwatch(self)

    def spend(self, tokens: int) -> None:
        self.tokens += tokens

    def apply(self, queue: QueueState) -> None:
        """Take over what the line says about this call."""
        self.is_running = self.is_running or self.key in queue.admitted
        self.place = queue.places.get(self.key, self.place)
        self.limit = queue.limit
        self.changed.set()


class HeldSlots:
    """What the calls of an event loop hold: slots, and places in lines."""

    def __init__(self) -> None:
        self.requests: dict[str, SharedRequest] = {}
        self.queues: dict[str, WatchedQueue] = {}
        self.renewal: asyncio.Task[None] | None = None

    def add(self, request: SharedRequest) -> None:
        self.requests[request.key] = request
        if self.renewal is None or self.renewal.done():
            self.renewal = asyncio.create_task(self._renew())

    async def leave(self, request: SharedRequest) -> None:
        """Free what the call holds; if that fails, it expires."""
        self.requests.pop(request.key, None)
        try:
            await database.run(
                slots.leave, request.key, request.label, request.limits, request.tokens
            )
        except DatabaseProblem as error:
            logger.warning("Can't free the slot of %s: %s", request.label, error)
        if queue := self.queues.get(request.label):
            queue.woken.set()
        if not self.requests and self.renewal is not None:
            self.renewal.cancel()

    def watch(self, request: SharedRequest) -> None:
        queue = self.queues.setdefault(request.label, WatchedQueue(request.label))
        queue.add(request)

    def unwatch(self, request: SharedRequest) -> None:
        if queue := self.queues.get(request.label):
            queue.waiting.pop(request.key, None)

    async def _renew(self) -> None:
        while self.requests:
            await asyncio.sleep(slots.RENEW_SECONDS)
            try:
                await database.run(slots.renew, tuple(self.requests))
            except DatabaseProblem as error:
                logger.warning("Can't extend the slots of models: %s", error)


class WatchedQueue:
    """A model's line, watched as long as calls of this loop wait there."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.waiting: dict[str, SharedRequest] = {}
        self.woken = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def add(self, request: SharedRequest) -> None:
        self.waiting[request.key] = request
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while self.waiting:
            try:
                pause = await self._look()
            except DatabaseProblem as error:
                logger.warning("Can't read the line of %s: %s", self.label, error)
                pause = OTHERS_SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self.woken.wait(), pause)
            self.woken.clear()

    async def _look(self) -> float:
        """Admit who is next, tell all where they stand, and return when to look again."""
        waiting = dict(self.waiting)
        newest_request = next(reversed(waiting.values()))
        limits = newest_request.limits  # they may have changed meanwhile
        queue = await database.run(slots.admit, self.label, limits, frozenset(waiting))
        for request in waiting.values():
            is_known = request.key in queue.places or request.key in queue.admitted
            if is_known:
                request.apply(queue)
            elif request.key in self.waiting:
                # It expired, because this process stood still for too long.
                again = await database.run(slots.rejoin, request.key, self.label, limits)
                request.apply(again)
            if request.is_running:
                self.waiting.pop(request.key, None)
        first_place = min(queue.places.values(), default=0)
        if first_place == 1 and queue.seconds is not None and queue.limit != "concurrency":
            return min(OTHERS_SECONDS, max(MIN_SECONDS, queue.seconds))
        # As many as there are slots can be next at once, if other processes look meanwhile.
        return FIRST_SECONDS if first_place <= (limits.concurrency or 1) else OTHERS_SECONDS


_held: WeakKeyDictionary[AbstractEventLoop, HeldSlots] = WeakKeyDictionary()
