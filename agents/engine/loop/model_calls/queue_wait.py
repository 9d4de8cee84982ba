"""How a model request waits for its turn, and what the run says about it meanwhile."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from datetime import datetime

from agents.engine.errors import ModelBusy
from agents.engine.events import Event, EventFactory, EventType, StatusKind
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.resilience.rate_limiter import QueuePlace, SlotRequest

from ..termination import WorkTime


def request_slot(planner: ReActPlanner) -> AbstractAsyncContextManager[SlotRequest | None]:
    """Return the request for a slot of the planner's model; None if it has no limits."""
    rate_limiter = planner.rate_limiter
    return rate_limiter.request(planner.model) if rate_limiter else nullcontext()


async def wait_in_line(
    slot: SlotRequest,
    planner: ReActPlanner,
    emit: EventFactory,
    step: int,
    work_time: WorkTime,
) -> AsyncGenerator[Event, None]:
    """Report each new place in line, and how long the call has waited."""
    began: datetime | None = None
    place: QueuePlace | None = None
    try:
        with work_time.pause():
            async with aclosing(slot.places()) as places:
                async for place in places:
                    began = began or emit.clock.now()
                    yield _queue_event(planner, emit, step, place, began)
    except ModelBusy:
        if place is not None and began is not None:
            yield _queue_event(planner, emit, step, place, began)
        raise
    if place is not None and began is not None:
        yield _queue_event(planner, emit, step, QueuePlace(0, place.limit), began)


def _queue_event(
    planner: ReActPlanner, emit: EventFactory, step: int, place: QueuePlace, began: datetime
) -> Event:
    """Return the call's place in the queue; at 0 it is its turn."""
    limiter = planner.rate_limiter
    waited = (emit.clock.now() - began).total_seconds()
    return emit(
        EventType.STATUS,
        kind=StatusKind.LIMITED,
        limit=place.limit,
        most=limiter.limits.most(place.limit) if limiter else 0,
        model=planner.model,
        place=place.place,
        since=began.isoformat(),
        waited=round(waited, 2),
        step=step,
    )
