"""The events of an experiment's runs: on recorded results, or live without side effects."""

import asyncio
from contextlib import aclosing
from functools import partial

from agents.catalog import agent_factory, tool_factory
from agents.catalog.recorded_tools import observations, registry_of
from agents.db import database
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType
from agents.engine.loop import Events, RecordedCall, RecordedCalls
from agents.models import Run

from .errors import ApprovalNeeded, DeadlineExceeded
from .models import ExperimentResult

APPROVAL_EVENTS = {EventType.APPROVAL_REQUESTED, EventType.RUN_PAUSED}


async def events(run: Run) -> Events:
    """Return the events of a new or interrupted run of an experiment."""
    result = await database.run(_load_result, run)
    if result is None:
        raise AgentError("The experiment of this run was deleted.")
    if result.experiment.is_live:
        stream = await _live(run)
    else:
        stream = await _recorded(run, result)
    return _within(stream, result.experiment.deadline)


async def _live(run: Run) -> Events:
    """Execute tools that only read; others would need an approval, which ends the run."""
    registry = partial(tool_factory.build_registry, asks_before_writing=True)
    return _until_approval(await agent_factory.stream_with(run, registry, asks=True))


async def _recorded(run: Run, result: ExperimentResult) -> Events:
    recorded_calls = RecordedCalls(await database.run(recorded_calls_of, result))
    recorded_calls.resume(await database.run(agent_factory.own_events, run))
    registry = registry_of(recorded_calls)
    stream = await agent_factory.stream_with(run, registry, asks=False)
    return recorded_calls.until_divergence(stream)


def recorded_calls_of(result: ExperimentResult) -> list[RecordedCall]:
    """Return the recorded calls of the example or of the run that is repeated."""
    if result.example is not None:
        rows = result.example.observations
    else:
        rows = observations(result.origin) if result.origin else []
    return [RecordedCall.from_dict(row) for row in rows]


def _load_result(run: Run) -> ExperimentResult | None:
    related = ExperimentResult.objects.select_related("experiment", "example", "origin")
    return related.filter(run=run.pk).first()


async def _until_approval(source: Events) -> Events:
    """Yield events until one needs a person; that one isn't saved or asked."""
    async with aclosing(source) as stream:
        async for event in stream:
            if event.type in APPROVAL_EVENTS:
                raise ApprovalNeeded
            yield event


async def _within(source: Events, seconds: int) -> Events:
    """Yield the events; raise DeadlineExceeded if they take too long."""
    deadline = asyncio.get_running_loop().time() + seconds
    async with aclosing(source) as stream:
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    event: Event = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise DeadlineExceeded(seconds) from None
            yield event
