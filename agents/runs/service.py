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
from agents.engine.loop import StopReason
from agents.engine.state import Message
from agents.llm import http
from agents.models import Agent, Run, WorkflowVersion

from . import clocks, event_store, event_writer, executor, job_queue, leases
from .executor import HANDOVER, POLL_SECONDS, SHUTDOWN, STOP_TIMEOUT_SECONDS, Follower

logger = logging.getLogger(__name__)

# What PostgreSQL and SQLite call it that a topic has one live run.
ONE_LIVE_CONSTRAINT = ("one_live_run_a_topic", "agents_run.topic")


class RunInProgress(Exception):
    """There is a run in this session already."""


def on_finished(follower: Follower) -> None:
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
    planner_factory.ensure_usable(agent, model, user)
    asked = {"query": query, "history": history or [], "topic": topic, "user": user}
    asked |= {"workflow": workflow, "parameters": parameters or {}}
    try:
        with transaction.atomic(savepoint=False):
            _check_quota(user)
            run = _create_run(agent, **asked, model=model)
    except IntegrityError as error:
        if not any(name in str(error) for name in ONE_LIVE_CONSTRAINT):
            raise
        raise RunInProgress from error
    _enqueue(run)
    return run


def prepare_rerun(
    origin: Run, *, topic: str, step: int, overrides: dict[str, Any], user: Any, agent: Agent
) -> Run:
    """A run that goes the way of another one up to this step, as a row, on a topic of its own.

    What is told of it again, and how it goes on from there, is `resume`'s to see to.
    """
    model = overrides.get("model") or planner_factory.model_name(agent)
    planner_factory.ensure_usable(agent, model, user)
    with transaction.atomic():
        _check_quota(user)
        run = _create_run(
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
        _enqueue(run)
    return run


def prepare_continuation(origin: Run, *, topic: str, user: Any) -> Run:
    """A run that goes on with the plan of one that was stopped, as a row."""
    if origin.agent is None or not origin.agent.enabled:
        raise agent_factory.NoAgentAvailable("The agent of this run was switched off.")
    if origin.agent_id in permissions.restrictions_for(user and user.pk).agents:
        raise agent_factory.AgentForbidden
    last = origin.steps.order_by("-number").values_list("number", flat=True).first() or 0
    overrides = {**origin.overrides, "continues": True}
    about = {"topic": topic, "step": last + 1, "overrides": overrides, "user": user}
    return prepare_rerun(origin, agent=origin.agent, **about)


def prepare_draft_run(
    draft: Agent, description: Description, *, query: str, topic: str, user: Any
) -> Run:
    """A run of an agent as it is described, and as no row has it, as a row of its own."""
    kept: dict[str, Any] = {"agent": draft if draft.pk else None, "agent_version": None}
    kept |= {
        "overrides": {agent_factory.DRAFT_KEY: description},
        "history": [],
        "parameters": {},
    }
    model = planner_factory.model_name(draft)
    with transaction.atomic():
        run = _create_run(draft, query=query, topic=topic, user=user, model=model, **kept)
        _enqueue(run)
    return run


def _check_quota(user: Any) -> None:
    """Whatever of theirs is being begun in the same moment is counted before, or after."""
    if user is not None and (settings.PERSON_RUNS or settings.PERSON_TOKENS):
        quotas.lock_user(user)
        quotas.check(user)


def _create_run(agent: Agent, /, **columns: Any) -> Run:
    workflow = columns.get("workflow")
    columns = {"agent": agent, "agent_version": agent.version or None} | columns
    asked = {name: columns[name] for name in ("query", "history", "parameters")}
    run = Run(
        **columns
        | {name: masking.mask_for_storage(agent, value) for name, value in asked.items()},
        agent_name=agent_factory.workflow_agent_name(workflow) if workflow else agent.name,
        dialect=agent.dialect,
        # Where a plan is carried out, turns say nothing about how far it is.
        max_steps=0 if workflow or agent.mode != Agent.Mode.REACT else agent.max_steps,
        marks="",
        **leases.owner_fields(),
    )
    run.save(force_insert=True)
    clocks.get_clock(run.pk)
    run.unkept = asked
    return run


def wake(run: Run) -> Run | None:
    """A run that waited, about to go on; None where somebody else was quicker."""
    woken = leases.wake(run)
    if woken is not None:
        _enqueue(woken)
    return woken


def launch(run: Run) -> None:
    """Set it going, if it is ours to drive; whoever wants to see it watches its topic."""
    if leases.is_ours(run):
        course = agent_factory.resume if run.is_rerun else agent_factory.start
        executor.current().start(run, course)


def resume(run: Run) -> None:
    """Let it go on from its events, if it is ours to drive."""
    if leases.is_ours(run):
        executor.current().start(run, agent_factory.resume)


async def drive(run: int) -> None:
    """See a run to its end, as a worker does, unless it is somebody else's by now."""
    ours = await database.run(_acquire, run)
    if ours is not None:
        resume(ours)
        await wait(ours)


async def stop(run: Run) -> None:
    """End it now, in the model's stream or inside a tool; come back when it has ended."""
    shop = executor.current()
    is_here = run.pk in shop.tasks
    is_driven = is_here or await database.run(leases.request_stop, run)
    has_ended = is_driven and await (shop.cancel(run) if is_here else _wait_stopped(run))
    if is_driven and not has_ended:
        logger.warning("Run %s didn't stop in time. It is closed anyway.", run.pk)
    # In any case: a task that was cancelled before its first step has closed nothing, and of
    # what a process began that is gone by now nobody knows how far it came.
    await shop.close(run, event_store.Ending(StopReason.CANCELLED, is_sure=has_ended))
    shop.go_on(run)


async def wait(run: Run) -> None:
    """Come back when this run has ended."""
    if (task := executor.current().tasks.get(run.pk)) is not None:
        await asyncio.wait([task])


async def recover_periodically() -> None:
    """Take over what nobody drives any more, for as long as the server runs."""
    while True:
        try:
            await recover_abandoned()
        except Exception:  # whatever it was, the next look may find what this one did not
            logger.exception("Can't recover abandoned runs.")
        await executor.notify_followers(None)
        await asyncio.sleep(leases.HEARTBEAT_SECONDS)


async def recover_abandoned() -> int:
    """See to it that the runs that were left behind go on; say how many."""
    mine = set(executor.current().tasks)
    left, ended = await database.run(_claim_abandoned, mine)
    for run, events in ended:
        await event_writer.publish(run, events)
    for run in left:
        resume(run)
    return len(left)


async def shut_down(grace: float = 0, *, hand_over: bool = True) -> None:
    """Stop everything that runs on this event loop; leave no thread and no program behind.

    What does not end within the grace is left to whoever comes next, or closed.
    """
    left = await executor.close(grace, HANDOVER if hand_over else SHUTDOWN)
    # Now that all is written: whoever takes them over starts from what is there.
    await database.run(_release_all, left)
    await mcp_servers.shut_down()
    await http.close()


def _claim_abandoned(mine: set[int]) -> tuple[list[Run], list[tuple[Run, list[Event]]]]:
    """Those that are ours now, and those that were ended, with what is to be told of them.

    Where workers drive the runs, they are lined up instead.
    """
    going_on, ended = [], []
    known = mine | (job_queue.queued_runs() if settings.WORKERS else set())
    for run in leases.find_abandoned():
        if run.pk in known:
            continue
        if leases.is_crash_looping(run):
            events = event_store.close(
                run.pk, event_store.Ending(StopReason.INTERRUPTED), run.epoch
            )
            ended += [(run, events)] if events else []
        elif settings.WORKERS:
            job_queue.enqueue(run.pk)
        elif (ours := leases.acquire(run)) is not None:
            going_on.append(ours)
    return going_on, ended


def _release_all(left: list[Run]) -> None:
    for run in left:
        leases.release(run)
        _enqueue(run)


def _enqueue(run: Run) -> None:
    """Where workers drive the runs, one of them is to take it."""
    if settings.WORKERS:
        job_queue.enqueue(run.pk)


def _acquire(pk: int) -> Run | None:
    run = Run.objects.running().filter(pk=pk).first()
    return run and leases.acquire(run)


async def _wait_stopped(run: Run) -> bool:
    """Whether the process that drives it ends it in time, now that it was asked to."""
    end = time.monotonic() + STOP_TIMEOUT_SECONDS + POLL_SECONDS
    while is_running := await Run.objects.running().filter(pk=run.pk).aexists():
        if time.monotonic() > end:
            break
        await asyncio.sleep(POLL_SECONDS / 4)
    return not is_running
