"""Start and stop runs. A run belongs to the server, not to a browser tab."""

import asyncio
import logging
import time
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from agents.access import masking, permissions, quotas
from agents.catalog import agent_factory, mcp_servers, planner_factory
from agents.catalog.agent_spec import Description
from agents.db import database
from agents.engine.events import Event
from agents.engine.loop.termination import StopReason
from agents.engine.state import Message
from agents.llm import http
from agents.models import Agent, Run, WorkflowVersion

from . import clocks, event_store, event_writer, executor, job_queue, leases
from .executor import HANDOVER, LOOK, SHUTDOWN, STOP_WITHIN, Follower

logger = logging.getLogger(__name__)

# What PostgreSQL and SQLite call it that a topic has one live run.
ONE_LIVE = ("one_live_run_a_topic", "agents_run.topic")


class StillAnswering(Exception):
    """There is a run in this session already."""


def when_over(follower: Follower) -> None:
    """Have this called with every run that is over, and with None at every look around."""
    executor.followers.append(follower)


def prepare(
    *,
    query: str,
    topic: str,
    user: Any = None,
    agent: Agent | None = None,
    history: list[Message] | None = None,
    workflow: WorkflowVersion | None = None,
    parameters: dict[str, Any] | None = None,
) -> Run:
    """A new run, as a row; raises StillAnswering while another one lives on the topic.

    With a workflow it carries that out; the agent is the one whose model and limits it has.
    Raises planners.NotReady where no model of the agent can be asked, and allowances.UsedUp
    where this person has asked for all that they may.
    """
    agent = agent or agent_factory.default_agent(user and user.pk)
    model = planner_factory.model_name(agent)
    planner_factory.check(agent, model, user)
    asked = {"query": query, "history": history or [], "topic": topic, "user": user}
    asked |= {"workflow": workflow, "parameters": parameters or {}}
    try:
        with transaction.atomic(savepoint=False):
            _allow(user)
            run = _created(agent, **asked, model=model)
    except IntegrityError as error:
        if not any(name in str(error) for name in ONE_LIVE):
            raise
        raise StillAnswering from error
    _line_up(run)
    return run


def prepare_again(
    origin: Run, *, topic: str, step: int, overrides: dict[str, Any], user: Any, agent: Agent
) -> Run:
    """A run that goes the way of another one up to this step, as a row, on a topic of its own.

    What is told of it again, and how it goes on from there, is `resume`'s to see to.
    """
    model = overrides.get("model") or planner_factory.model_name(agent)
    planner_factory.check(agent, model, user)
    with transaction.atomic():
        _allow(user)
        run = _created(
            agent,
            query=origin.query,
            history=origin.history,
            topic=topic,
            user=user,
            model=model,
            origin=origin,
            origin_step=step,
            overrides=overrides,
            workflow=origin.workflow,
            parameters=origin.parameters,
        )
        _line_up(run)
    return run


def prepare_rest(origin: Run, *, topic: str, user: Any) -> Run:
    """A run that goes on with the plan of one that was stopped, as a row."""
    if origin.agent is None or not origin.agent.enabled:
        raise agent_factory.NoAgent("The agent of this run was switched off.")
    if origin.agent_id in permissions.closed_to(user and user.pk).agents:
        raise agent_factory.NotForThem
    last = origin.steps.order_by("-number").values_list("number", flat=True).first() or 0
    overrides = {**origin.overrides, "continues": True}
    about = {"topic": topic, "step": last + 1, "overrides": overrides, "user": user}
    return prepare_again(origin, agent=origin.agent, **about)


def prepare_trial(
    draft: Agent, description: Description, *, query: str, topic: str, user: Any
) -> Run:
    """A run of an agent as it is described, and as no row has it, as a row of its own."""
    kept: dict[str, Any] = {"agent": draft if draft.pk else None, "agent_version": None}
    kept |= {"overrides": {agent_factory.TRIED: description}, "history": [], "parameters": {}}
    model = planner_factory.model_name(draft)
    with transaction.atomic():
        run = _created(draft, query=query, topic=topic, user=user, model=model, **kept)
        _line_up(run)
    return run


def _allow(user: Any) -> None:
    """Whatever of theirs is being begun in the same moment is counted before, or after."""
    if user is not None and (settings.PERSON_RUNS or settings.PERSON_TOKENS):
        quotas.hold(user)
        quotas.check(user)


def _created(agent: Agent, /, **columns: Any) -> Run:
    workflow = columns.get("workflow")
    columns = {"agent": agent, "agent_version": agent.version or None} | columns
    asked = {name: columns[name] for name in ("query", "history", "parameters")}
    run = Run(
        **columns | {name: masking.kept(agent, value) for name, value in asked.items()},
        agent_name=agent_factory.name_of(workflow) if workflow else agent.name,
        dialect=agent.dialect,
        # Where a plan is carried out, turns say nothing about how far it is.
        max_steps=0 if workflow or agent.mode != Agent.Mode.REACT else agent.max_steps,
        marks="",
        **leases.next_owner(),
    )
    run.save(force_insert=True)
    clocks.of(run.pk)
    run.unkept = asked
    return run


def wake(run: Run) -> Run | None:
    """A run that waited, about to go on; None where somebody else was quicker."""
    woken = leases.wake(run)
    if woken is not None:
        _line_up(woken)
    return woken


def launch(run: Run) -> None:
    """Set it going, if it is ours to drive; whoever wants to see it watches its topic."""
    if leases.is_ours(run):
        course = agent_factory.resume if run.is_rerun else agent_factory.begin
        executor.here().set_going(run, course)


def resume(run: Run) -> None:
    """Let it go on from its events, if it is ours to drive."""
    if leases.is_ours(run):
        executor.here().set_going(run, agent_factory.resume)


async def drive(run: int) -> None:
    """See a run to its end, as a worker does, unless it is somebody else's by now."""
    ours = await database.ask(_taken, run)
    if ours is not None:
        resume(ours)
        await wait(ours)


async def stop(run: Run) -> None:
    """End it now, in the model's stream or inside a tool; come back when it has ended."""
    shop = executor.here()
    is_here = run.pk in shop.tasks
    is_driven = is_here or await database.ask(leases.ask_to_stop, run)
    has_ended = is_driven and await (shop.cancel(run) if is_here else _has_obeyed(run))
    if is_driven and not has_ended:
        logger.warning("Run %s does not let itself be stopped; it is cut off.", run.pk)
    # In any case: a task that was cancelled before its first step has closed nothing, and of
    # what a process began that is gone by now nobody knows how far it came.
    await shop.close(run, event_store.Ending(StopReason.CANCELLED, is_sure=has_ended))
    shop.go_on(run)


async def wait(run: Run) -> None:
    """Come back when this run has ended."""
    if (task := executor.here().tasks.get(run.pk)) is not None:
        await asyncio.wait([task])


async def tend() -> None:
    """Take over what nobody drives any more, for as long as the server runs."""
    while True:
        try:
            await take_over()
        except Exception:  # whatever it was, the next look may find what this one did not
            logger.exception("Abandoned runs could not be looked for.")
        await executor.follow(None)
        await asyncio.sleep(leases.BEAT)


async def take_over() -> int:
    """See to it that the runs that were left behind go on; say how many."""
    mine = set(executor.here().tasks)
    left, ended = await database.ask(_left_behind, mine)
    for run, events in ended:
        await event_writer.tell(run, events)
    for run in left:
        resume(run)
    return len(left)


async def shut_down(grace: float = 0, *, hand_over: bool = True) -> None:
    """Stop everything that runs on this event loop; leave no thread and no program behind.

    What does not end within the grace is left to whoever comes next, or closed.
    """
    left = await executor.close(grace, HANDOVER if hand_over else SHUTDOWN)
    # Now that all is written: whoever takes them over starts from what is there.
    await database.ask(_leave_behind, left)
    await mcp_servers.shut_down()
    await http.close()


def _left_behind(mine: set[int]) -> tuple[list[Run], list[tuple[Run, list[Event]]]]:
    """Those that are ours now, and those that were ended, with what is to be told of them.

    Where workers drive the runs, they are lined up instead.
    """
    going_on, ended = [], []
    known = mine | (job_queue.in_line() if settings.WORKERS else set())
    for run in leases.abandoned():
        if run.pk in known:
            continue
        if leases.is_given_up(run):
            events = event_store.close(
                run.pk, event_store.Ending(StopReason.INTERRUPTED), run.epoch
            )
            ended += [(run, events)] if events else []
        elif settings.WORKERS:
            job_queue.add(run.pk)
        elif (ours := leases.take(run)) is not None:
            going_on.append(ours)
    return going_on, ended


def _leave_behind(left: list[Run]) -> None:
    for run in left:
        leases.release(run)
        _line_up(run)


def _line_up(run: Run) -> None:
    """Where workers drive the runs, one of them is to take it."""
    if settings.WORKERS:
        job_queue.add(run.pk)


def _taken(pk: int) -> Run | None:
    run = Run.objects.running().filter(pk=pk).first()
    return run and leases.take(run)


async def _has_obeyed(run: Run) -> bool:
    """Whether the process that drives it ends it in time, now that it was asked to."""
    end = time.monotonic() + STOP_WITHIN + LOOK
    while is_running := await Run.objects.running().filter(pk=run.pk).aexists():
        if time.monotonic() > end:
            break
        await asyncio.sleep(LOOK / 4)
    return not is_running
