"""Starts and stops runs. A run belongs to the server, not to a browser tab."""

import asyncio
import logging
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.access import api_keys, masking, permissions
from agents.catalog import agent_factory, mcp_servers
from agents.catalog.agent_spec import AgentSpec
from agents.catalog.language_models import model_setups
from agents.db import database, jobs
from agents.db.fast_writes import insert
from agents.db.periodic import periodic
from agents.engine.loop import StopReason
from agents.engine.sentences import Sentence as _
from agents.engine.state import Message
from agents.llm.wire import http
from agents.metering import budgets
from agents.models import (
    Agent,
    Approval,
    HiddenTopic,
    OutsideTextTopic,
    Project,
    Run,
    WorkflowVersion,
)

from . import clocks, event_store, executor, isolation, job_queue, leases
from .executor import (
    HANDOVER,
    POLL_SECONDS,
    SHUTDOWN,
    STOP_TIMEOUT_SECONDS,
    EventSource,
    FinishListener,
)

logger = logging.getLogger(__name__)

# PostgreSQL's and SQLite's names for the constraint of one live run per topic.
ONE_LIVE_CONSTRAINT = ("one_live_run_a_topic", "agents_run.topic")

# A program that doesn't come back leaves its run behind.
CLIENT_WAITING = timedelta(hours=1)


class RunInProgress(Exception):
    """Raised when the topic already has a live run."""


def on_finished(follower: FinishListener) -> None:
    """Call the follower with every finished run."""
    executor.followers.append(follower)


_sources: dict[str, EventSource] = {}


def use_source(prefix: str, source: EventSource) -> None:
    """Take the events of runs whose topic starts like this from another source.

    It is called for new and for interrupted runs.
    """
    _sources[prefix] = source


def _source_for(run: Run, default: EventSource) -> EventSource:
    sources = (source for prefix, source in _sources.items() if run.topic.startswith(prefix))
    return next(sources, default)


def prepare(
    *,
    query: str,
    topic: str,
    user: User | None = None,
    agent: Agent | None = None,
    history: list[Message] | None = None,
    workflow: WorkflowVersion | None = None,
    parameters: dict[str, Any] | None = None,
    overrides: dict[str, Any] | None = None,
    files: list[dict[str, Any]] | None = None,
    project: Project | None = None,
) -> Run:
    """Create a run; raise RunInProgress while another one is live on the topic.

    With a workflow it executes that; the agent provides the model and limits, as far as
    `overrides` has no others. Raises an AgentError if none of the agent's models can be used,
    or if the user's quota is used up.
    """
    agent = agent or agent_factory.default_agent(None if user is None else user.pk)
    overrides = overrides or {}
    model = overrides.get("model") or model_setups.model_name(agent)
    model_setups.ensure_usable(agent, model, user)
    try:
        with transaction.atomic(savepoint=False):
            budgets.start_run(user, agent)
            if files or project is not None:
                OutsideTextTopic.objects.mark(topic)
            run = _create_run(
                agent,
                query=query,
                history=history or [],
                topic=topic,
                user=user,
                workflow=workflow,
                parameters=parameters or {},
                model=model,
                overrides=overrides,
                files=files or [],
                project=project,
            )
    except IntegrityError as error:
        if not any(name in str(error) for name in ONE_LIVE_CONSTRAINT):
            raise
        raise RunInProgress from error
    _enqueue(run)
    return run


def prepare_rerun(
    origin: Run, *, topic: str, step: int, overrides: dict[str, Any], user: User, agent: Agent
) -> Run:
    """Create a rerun of another run up to this step, on its own topic.

    `resume` replays the events and continues from there.
    """
    model = overrides.get("model") or model_setups.model_name(agent)
    model_setups.ensure_usable(agent, model, user)
    project = None
    if origin.project_id is not None:  # only for members of it
        project = Project.objects.for_user(user).filter(pk=origin.project_id).first()
    with transaction.atomic():
        budgets.start_run(user, agent)
        run = _create_run(
            agent,
            query=origin.query,
            history=origin.history,
            files=origin.files,
            topic=topic,
            user=user,
            model=model,
            origin=origin,
            origin_step=step,
            overrides=overrides,
            workflow=origin.workflow,
            parameters=origin.parameters,
            project=project,
        )
        HiddenTopic.objects.hide_like(origin.topic, topic)
        _enqueue(run)
    return run


def prepare_continuation(origin: Run, *, topic: str, user: User) -> Run:
    """Create a run that continues the plan of a stopped one."""
    if origin.agent is None or not origin.agent.enabled:
        raise agent_factory.NoAgentAvailable(_("The agent of this run was disabled."))
    if origin.agent_id in permissions.restrictions_for(user.pk).agents:
        raise agent_factory.AgentForbidden
    last = origin.steps.order_by("-number").values_list("number", flat=True).first() or 0
    overrides = {**origin.overrides, "continues": True}
    return prepare_rerun(
        origin,
        topic=topic,
        step=last + 1,
        overrides=overrides,
        user=user,
        agent=origin.agent,
    )


def prepare_draft_run(
    draft: Agent,
    spec: AgentSpec,
    *,
    query: str,
    topic: str,
    user: User,
    history: list[Message] | None = None,
) -> Run:
    """Create a run of an unsaved draft of an agent; `history` are earlier questions to it."""
    with transaction.atomic():
        budgets.start_run(user, draft)
        run = _create_run(
            draft,
            query=query,
            history=history or [],
            parameters={},
            topic=topic,
            user=user,
            model=model_setups.model_name(draft),
            agent=draft if draft.pk else None,
            agent_version=None,
            overrides={agent_factory.DRAFT_KEY: spec},
        )
        _enqueue(run)
    return run


def prepare_experiment_run(
    agent: Agent,
    spec: AgentSpec,
    *,
    query: str,
    history: list[Message],
    topic: str,
    user: User | None,
    origin: Run | None,
) -> Run:
    """Create a run of a draft or a version that answers a saved question again.

    With `origin`, the question is that run's, and so are the rights to read it.
    """
    model = model_setups.model_name(agent)
    model_setups.ensure_usable(agent, model, user)
    with transaction.atomic():
        budgets.start_run(user, agent)
        run = _create_run(
            agent,
            query=query,
            history=history,
            parameters={},
            topic=topic,
            user=user,
            model=model,
            origin=origin,
            origin_step=None if origin is None else 1,
            agent_version=None,
            overrides={agent_factory.DRAFT_KEY: spec},
        )
        if origin is not None:
            HiddenTopic.objects.hide_like(origin.topic, topic)
        _enqueue(run)
    return run


def _create_run(agent: Agent, /, **columns: Any) -> Run:
    workflow = columns.get("workflow")
    columns = {"agent": agent, "agent_version": agent.version or None} | columns
    original = {name: columns[name] for name in ("query", "history", "parameters")}
    run = Run(
        **columns
        | {name: masking.mask_for_storage(agent, value) for name, value in original.items()},
        agent_name=agent_factory.workflow_agent_name(workflow) if workflow else agent.name,
        dialect=agent.dialect,
        # With a plan, turns don't measure progress.
        max_steps=0 if workflow or agent.mode != Agent.Mode.REACT else agent.max_steps,
        step_types="",
        api_key=api_keys.current(),
        **leases.owner_fields(),
    )
    insert(run)
    clocks.get_clock(run.pk)
    run.unsaved_values = original
    return run


def wake(run: Run) -> Run | None:
    """Resume a waiting run; return None if another process was faster."""
    resumed = leases.wake(run)
    if resumed is not None:
        _enqueue(resumed)
    return resumed


def launch(run: Run) -> None:
    """Start a run if this process owns it; pages watch its topic."""
    if leases.is_ours(run):
        source = agent_factory.resume if run.is_rerun else agent_factory.start
        executor.current().start(run, _source_for(run, source))


def resume(run: Run) -> None:
    """Resume a run from its events if this process owns it."""
    if leases.is_ours(run):
        executor.current().start(run, _source_for(run, agent_factory.resume))


async def drive(run: int) -> None:
    """Drive a run to its end, as a worker does, unless another process owns it."""
    acquired = await database.run(_acquire, run)
    if acquired is None:
        return
    if acquired.needs_isolation:
        await isolation.start(acquired)
    else:
        resume(acquired)
        await wait(acquired)


def drive_claimed(run: int, owner: str) -> None:
    """Drive a run that `owner` has started this process for, and nothing else."""
    asyncio.run(_drive_claimed(run, owner))


async def _drive_claimed(pk: int, owner: str) -> None:
    run = await database.run(leases.adopt, pk, owner)
    if run is None:
        return
    local_executor = executor.current()
    local_executor.is_closing = True  # the parent starts what follows
    resume(run)
    while not jobs.stopping.is_set() and (task := local_executor.tasks.get(run.pk)) is not None:
        await asyncio.wait([task], timeout=POLL_SECONDS)
    await shut_down()


async def stop(run: Run) -> None:
    """Stop a run now, in the model's stream or inside a tool, and wait until it has ended."""
    local_executor = executor.current()
    is_here = run.pk in local_executor.tasks
    is_driven = is_here or await database.run(leases.request_stop, run)
    has_ended = False
    if is_here:
        has_ended = await local_executor.cancel(run)
    elif is_driven:
        has_ended = await _wait_stopped(run)
    if is_driven and not has_ended:
        logger.warning("Run %s didn't stop in time. It is closed anyway.", run.pk)
    # In any case: a task cancelled before its first step has closed nothing, and how far the
    # calls of a dead process got is unknown.
    await local_executor.end_run(
        run, event_store.Ending(StopReason.CANCELLED, is_sure=has_ended)
    )
    local_executor.notify_in_background(run)


async def wait(run: Run) -> None:
    """Wait until this run has ended."""
    if (task := executor.current().tasks.get(run.pk)) is not None:
        await asyncio.wait([task])


@periodic("unanswered function calls", every=300)
async def stop_unanswered() -> int:
    """Stop runs whose program hasn't returned a function's result; return how many."""
    unanswered = await database.run(_find_unanswered)
    for run in unanswered:
        await stop(run)
    return len(unanswered)


def _find_unanswered() -> list[Run]:
    old = Approval.objects.waiting().filter(
        why=Approval.Why.CLIENT, asked_at__lt=timezone.now() - CLIENT_WAITING
    )
    return list(Run.objects.waiting().filter(pk__in=old.values("run")))


@periodic("abandoned runs", every=leases.HEARTBEAT_SECONDS)
async def recover_abandoned() -> int:
    """Resume abandoned runs; return how many."""
    local_pks = executor.current().tasks.keys() | isolation.tasks.keys()
    recovered = await database.run(_claim_abandoned, local_pks)
    for run in recovered:
        if run.needs_isolation:
            isolation.start(run)
        else:
            resume(run)
    return len(recovered)


async def shut_down(grace: float = 0, *, hand_over: bool = True) -> None:
    """Stop everything on this event loop, without leaving threads or processes behind.

    Runs that don't end within the grace period are handed over or closed.
    """
    if isolation.tasks:
        await asyncio.wait(isolation.tasks.values(), timeout=2 * jobs.STOP_SECONDS)
    unfinished = await executor.shut_down(grace, HANDOVER if hand_over else SHUTDOWN)
    # Now that everything is written, the next owner sees all of it.
    await database.run(_release_all, unfinished)
    await mcp_servers.shut_down()
    await http.close()


def _claim_abandoned(local_pks: set[int]) -> list[Run]:
    """Return the runs this process took over. With workers, runs are enqueued instead."""
    acquired = []
    driven_pks = local_pks | (job_queue.queued_runs() if settings.WORKERS else set())
    for run in leases.find_abandoned():
        if run.pk in driven_pks:
            continue
        if settings.WORKERS:
            job_queue.enqueue(run.pk)
        elif (claimed := leases.acquire(run)) is not None:
            acquired.append(claimed)
    return acquired


def _release_all(runs: list[Run]) -> None:
    for run in runs:
        leases.release(run)
        _enqueue(run)


def _enqueue(run: Run) -> None:
    """Enqueue the run for a worker, if there are any."""
    if settings.WORKERS:
        job_queue.enqueue(run.pk)


def _acquire(pk: int) -> Run | None:
    run = Run.objects.running().filter(pk=pk).first()
    return run and leases.acquire(run)


async def _wait_stopped(run: Run) -> bool:
    """Whether the owner stops the run in time after a request."""
    end = time.monotonic() + STOP_TIMEOUT_SECONDS + POLL_SECONDS
    while is_running := await Run.objects.running().filter(pk=run.pk).aexists():
        if time.monotonic() > end:
            break
        await asyncio.sleep(POLL_SECONDS / 4)
    return not is_running
