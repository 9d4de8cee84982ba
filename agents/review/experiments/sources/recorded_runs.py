"""The events of an experiment's runs: on recorded results, or live without side effects."""

import asyncio
from contextlib import aclosing
from functools import partial

from agents.catalog import agent_factory
from agents.catalog.recorded_tools import observations, registry_of
from agents.catalog.tools import tool_factory
from agents.db import database
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType
from agents.engine.loop import Events, RecordedCall, RecordedCalls
from agents.engine.sentences import Sentence as _
from agents.models import Run

from ..errors import ApprovalNeeded, DeadlineExceeded
from ..models import ExperimentResult

APPROVAL_EVENTS = {EventType.APPROVAL_REQUESTED, EventType.RUN_PAUSED}


async def events(run: Run) -> Events:
    """Return the events of a new or interrupted run of an experiment."""
    results = ExperimentResult.objects.select_related("experiment", "example", "origin")
    result = await database.run(results.filter(run=run.pk).first)
    if result is None:
        raise AgentError(_("The experiment of this run was deleted."))
    if result.experiment.is_live:
        # Tools that only read are executed; others need an approval, which ends the run.
        live_registry = partial(tool_factory.build_registry, asks_before_writing=True)
        stream = _until_approval(await agent_factory.stream_with(run, live_registry))
    else:
        recorded_calls = RecordedCalls(await database.run(recorded_calls_of, result))
        recorded_calls.resume(await database.run(agent_factory.own_events, run))
        registry = registry_of(recorded_calls)
        dry_run = await agent_factory.stream_with(run, registry, agent_factory.as_dry_run)
        stream = recorded_calls.until_divergence(dry_run)
    return _within(stream, result.experiment.deadline)


def recorded_calls_of(result: ExperimentResult) -> list[RecordedCall]:
    """Return the recorded calls of the example or of the run that is repeated."""
    if result.example is not None:
        rows = result.example.observations
    else:
        rows = observations(result.origin) if result.origin else []
    return [RecordedCall.from_dict(row) for row in rows]


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
