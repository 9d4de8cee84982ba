"""The gate before every paid call: reserves, renews while the call runs, and settles.

Everything that calls a model or a tool passes here: `call`, or `call_now` in threads.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from django.db import DatabaseError, connection
from django.utils import translation

from agents.db import database
from agents.engine.errors import QuotaExceeded
from agents.engine.loop import Capability, FallbackResult, ToolHandler
from agents.engine.tool import Tool, ToolInput

from . import holds, limits
from .holds import HOLD_SECONDS, Hold
from .measures import HELD, MILLISECONDS, Estimate, Measure, Meter
from .payers import Payer, current_payer, paying, timed_counters, timing

Result = TypeVar("Result")
logger = logging.getLogger(__name__)

RENEW_SECONDS = HOLD_SECONDS / 3
# How long a call waits for others that have reserved the rest of a limit.
WAIT_SECONDS = 20.0
FIRST_PAUSE = 0.2
LAST_PAUSE = 1.0


Estimator = Callable[[], Estimate]


@asynccontextmanager
async def call(
    estimator: Estimator, *, model: str = "", tool: str = "", payer: Payer | None = None
) -> AsyncIterator[Meter]:
    """Reserve a call, or raise QuotaExceeded; count what its meter says when it ends.

    It is counted however the block ends: also if the run is stopped or the client is gone.
    Without limits, `estimator` isn't called and there is no query.
    """
    payer = payer or current_payer()
    meter = Meter()
    if not _may_apply(payer, model, tool):
        yield meter
        return
    hold = await _reserve(payer, estimator, model, tool)
    meter.began = time.monotonic()
    if hold is None:
        yield meter
        return
    meter.tokens = hold.estimate.least_tokens
    meter.cost = hold.estimate.least_cost
    meter.counters = hold.counters
    renewing = asyncio.create_task(_renew(hold, meter))
    try:
        yield meter
    finally:
        renewing.cancel()
        # In a task of its own: a run that is stopped cancels this one.
        settling = asyncio.create_task(_settle(hold, meter))
        _settling.add(settling)
        settling.add_done_callback(_settling.discard)
        await asyncio.shield(settling)


_settling: set[asyncio.Task[None]] = set()


async def _reserve(payer: Payer, estimator: Estimator, model: str, tool: str) -> Hold | None:
    """Reserve a call; wait a little if calls in progress have reserved the rest."""
    # Counting the tokens of a long history takes a while.
    estimate = await asyncio.to_thread(_own_connection(estimator))
    timed = timed_counters()
    deadline = time.monotonic() + WAIT_SECONDS
    pause = FIRST_PAUSE
    while True:
        try:
            return await database.run(_reserve_now, payer, estimate, model, tool, timed)
        except QuotaExceeded as error:
            refusal = error.refusal
            # Calls in progress may soon return what they reserved. Not time: the call that
            # waits may be part of the one that has reserved it.
            may_fit_soon = (
                refusal is not None
                and refusal.reason == "busy"
                and refusal.measure != Measure.SECONDS
            )
            if not may_fit_soon or time.monotonic() + pause > deadline:
                raise
        await asyncio.sleep(pause)
        pause = min(LAST_PAUSE, pause * 1.5)


def _reserve_now(
    payer: Payer, estimate: Estimate, model: str, tool: str, timed: frozenset[int]
) -> Hold | None:
    # The sentence of a run is saved in English and translated when it is displayed.
    with translation.override("en"):
        return holds.reserve(payer, estimate, model=model, tool=tool, timed=timed)


async def _renew(hold: Hold, meter: Meter) -> None:
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        with suppress(DatabaseError):  # the next one may work, and the hold lasts for three
            await database.run(holds.renew, hold, meter.used())


async def _settle(hold: Hold, meter: Meter) -> None:
    try:
        await database.run(holds.settle, hold, meter.used())
    except DatabaseError:  # the hold expires, and what it knows is counted
        logger.exception("Can't settle the call %s.", hold.call)


@contextmanager
def call_now(
    estimator: Estimator, *, model: str = "", tool: str = "", payer: Payer | None = None
) -> Iterator[Meter]:
    """Like `call`, for threads that may wait; the call must end within the hold's time."""
    payer = payer or current_payer()
    meter = Meter()
    if not _may_apply(payer, model, tool):
        yield meter
        return
    timed = timed_counters()
    hold = _own_connection(lambda: _reserve_now(payer, estimator(), model, tool, timed))()
    if hold is None:
        yield meter
        return
    meter.began = time.monotonic()
    meter.tokens = hold.estimate.least_tokens
    meter.cost = hold.estimate.least_cost
    try:
        yield meter
    finally:
        try:
            settle = partial(holds.settle, hold, meter.used())
            _own_connection(settle)()
        except DatabaseError:
            logger.exception("Can't settle the call %s.", hold.call)


def _own_connection(function: Callable[[], Result]) -> Callable[[], Result]:
    """Close the thread's connection afterwards if it had none: nothing else would."""

    def wrapped() -> Result:
        had_connection = connection.connection is not None
        try:
            return function()
        finally:
            if not had_connection:
                connection.close()

    return wrapped


def _may_apply(payer: Payer, model: str, tool: str) -> bool:
    """Whether a limit may apply, by what is in memory."""
    if not limits.has_limits(HELD):
        return False
    return limits.needs_groups() or bool(limits.limits_for(payer, model=model, tool=tool))


class Budget(Capability):
    """Admits an agent's tool calls, and tells models called in them whose they are.

    Model clients pass the gate by themselves, because they are called outside of runs, too.
    """

    def __init__(self, payer: Payer) -> None:
        self.payer = payer

    async def tool_call(
        self, tool: Tool, input: ToolInput, next: ToolHandler
    ) -> FallbackResult:
        """Make the call if the limits allow it; if not, the model reads which one."""
        try:
            with paying(replace(self.payer, tool=tool.name)):
                async with call(_tool_estimate, tool=tool.name, payer=self.payer) as meter:
                    with timing(meter.counters):
                        return await next(tool, input)
        except QuotaExceeded as error:
            return FallbackResult.refused(error.with_advice(), error)


TOOL_SECONDS = 10


def _tool_estimate() -> Estimate:
    return Estimate(seconds=TOOL_SECONDS * MILLISECONDS)
