"""Starts, advances and cancels experiments.

An experiment is rows: any process can advance it, and each call does what is possible now. It
is called when one of its runs has ended and at every periodic check, so an experiment continues
after a restart, with workers and without.
"""

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import runs
from agents.access import audit
from agents.catalog import agent_spec, model_setups, tool_factory
from agents.catalog.agent_spec import AgentSpec
from agents.console import tool_tester
from agents.db import database
from agents.db.periodic import periodic
from agents.engine.errors import AgentError, QuotaExceeded
from agents.engine.loop import effect
from agents.models import Agent, AgentStep, Run, ToolRegistration
from agents.models.runs import EXPERIMENT_TOPIC_PREFIX
from agents.review.models import Example, ExampleSet

from . import scoring, sources
from .errors import ExperimentRejected
from .models import Experiment, ExperimentResult
from .sources import Question, Questions, Source

logger = logging.getLogger(__name__)

State = ExperimentResult.State
MAX_AT_ONCE = 2
MAX_RUNNING = 3
DEADLINE_SECONDS = 120
MAX_DEADLINE_SECONDS = 1_800
RECLAIM_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an experiment runs; by default on recorded tool results."""

    target: str = Experiment.Target.DRAFT
    version: int | None = None
    is_live: bool = False
    judge_model: str = ""
    rubric: str = ""
    deadline: int = DEADLINE_SECONDS


def start_backtest(
    agent: Agent, spec: AgentSpec, source: Source, user: User, options: Options | None = None
) -> Experiment:
    """Start a backtest of an unsaved draft or a version, on recorded tool results."""
    return _start(Experiment.Kind.BACKTEST, agent, spec, source, user, options or Options())


def start_examples(
    example_set: ExampleSet, agent: Agent, spec: AgentSpec, user: User | None, options: Options
) -> Experiment:
    """Start a pass over an example set."""
    return _start(Experiment.Kind.EXAMPLES, agent, spec, example_set, user, options)


def _start(
    kind: str,
    agent: Agent,
    spec: AgentSpec,
    source: Source,
    user: User | None,
    options: Options,
) -> Experiment:
    questions = sources.load(source, agent, user)
    _check_possible(agent, spec, questions, user)
    is_published = options.target == Experiment.Target.PUBLISHED
    if options.is_live and not is_published and user is not None:
        # As in the test chat of a draft, which can change what a tool counts as.
        links = agent_spec.resolve(spec).links
        if denial := tool_tester.denial(user, [link.tool for link in links]):
            raise ExperimentRejected(denial)
    # The questions are loaded before it, because other writers wait for its end.
    with transaction.atomic():
        experiment = Experiment.objects.create(
            kind=kind,
            agent=agent,
            spec=spec,
            example_set=source if isinstance(source, ExampleSet) else None,
            target=options.target,
            version=options.version,
            is_live=options.is_live,
            judge_model=options.judge_model,
            rubric=options.rubric,
            deadline=min(options.deadline, MAX_DEADLINE_SECONDS),
            left_out=sorted(questions.left_out.items()),
            count=len(questions.found),
            started_by=user,
        )
        ExperimentResult.objects.bulk_create(
            _result(experiment, number, question)
            for number, question in enumerate(questions.found, start=1)
        )
        is_backtest = kind == Experiment.Kind.BACKTEST
        action = audit.BACKTEST_STARTED if is_backtest else audit.EXAMPLES_RUN
        audit.record(
            user,
            action,
            agent,
            experiment=experiment.pk,
            questions=experiment.count,
            live=experiment.is_live,
        )
    return experiment


def _result(experiment: Experiment, number: int, question: Question) -> ExperimentResult:
    return ExperimentResult(
        experiment=experiment,
        number=number,
        name=question.name,
        example=question.example,
        origin=question.origin,
    )


def _check_possible(
    agent: Agent, spec: AgentSpec, questions: Questions, user: User | None
) -> None:
    """Raise ExperimentRejected with a reason, before anything is created."""
    if not questions.found:
        raise ExperimentRejected(
            _("There is nothing to run. Choose other runs, or add examples first.")
        )
    running = Experiment.objects.open().filter(started_by=user)
    if user is not None and running.count() >= MAX_RUNNING:
        raise ExperimentRejected(
            _("You already have %(most)d experiments in progress. Wait, or cancel one.")
            % {"most": MAX_RUNNING}
        )
    tested = resolve(agent, spec)
    try:
        model_setups.ensure_usable(tested, model_setups.model_name(tested), user)
    except AgentError as error:
        raise ExperimentRejected(f"{error} {error.advice}") from error


def resolve(agent: Agent, spec: AgentSpec) -> Agent:
    """Return the tested agent, which isn't saved."""
    tested = agent_spec.resolve(spec).agent
    tested.pk = agent.pk
    return tested


def writing_tools(spec: AgentSpec) -> list[str]:
    """Return the described agent's tools that change something, by name."""
    rows = [link.configured_tool() for link in agent_spec.resolve(spec).links]
    local = {tool.name for tool in tool_factory.build_tools(rows) if effect(tool) != "read"}
    remote = [row for row in rows if row.source == ToolRegistration.Source.MCP]
    return sorted(local | {row.name for row in remote if row.effect != AgentStep.Effect.READ})


async def on_finished(run: Run) -> None:
    """Advance the experiment of a finished run."""
    if run.is_experiment_run:
        await advance(experiment_of(run))


@periodic("experiments", every=5)
async def advance_open() -> None:
    """Advance all that are open; a judge can take long to answer."""
    for pk in await database.run(_open_experiments):
        try:
            await advance(pk)
        except Exception:  # the next check tries again
            logger.exception("Can't advance experiment %s.", pk)


def experiment_of(run: Run) -> int:
    """Return the experiment of a run, by its topic."""
    return int(run.topic.removeprefix(EXPERIMENT_TOPIC_PREFIX).partition(".")[0])


def _open_experiments() -> list[int]:
    return list(Experiment.objects.open().values_list("pk", flat=True))


@dataclass(slots=True)
class _Work:
    """What the event loop has to do after a transaction."""

    started: list[Run] = field(default_factory=list)
    stopped: list[Run] = field(default_factory=list)
    ended: list[ExperimentResult] = field(default_factory=list)


async def advance(pk: int) -> None:
    """Score what has ended and start what is next."""
    while True:
        work = await database.run(_advance, pk)
        for run in work.started:
            runs.launch(run)
        for run in work.stopped:
            await runs.stop(run)
        for result in work.ended:
            await _score(result)
        if not work.ended and not work.stopped:
            return


async def _score(result: ExperimentResult) -> None:
    try:
        await scoring.score(result)
    except Exception:  # one result that can't be scored must not stop the others
        logger.exception("Can't score result %s.", result.pk)
        values = {"state": State.ERROR, "problem": "Something went wrong on the server."}
        row = ExperimentResult.objects.filter(pk=result.pk)
        await row.aupdate(**values)


@transaction.atomic
def _advance(pk: int) -> _Work:
    work = _Work()
    locked = Experiment.objects.select_for_update().select_related("agent")
    experiment = locked.filter(pk=pk, state=Experiment.State.RUNNING).first()
    if experiment is None:
        return work
    work.ended = _claim_ended(experiment)
    if experiment.is_to_stop:
        work.stopped = _cancel_open(experiment)
    else:
        work.started = _start_next(experiment)
    if not experiment.results.filter(state__in=ExperimentResult.OPEN).exists():
        _finish(experiment)
    return work


def _claim_ended(experiment: Experiment) -> list[ExperimentResult]:
    """Return results whose run has ended; also those that a dead process was scoring."""
    now = timezone.now()
    is_over = Q(state=State.RUNNING) & (Q(run=None) | ~Q(run__status__in=Run.LIVE))
    is_left = Q(state=State.SCORING, claimed_at__lt=now - RECLAIM_AFTER)
    related = ("experiment", "example", "origin", "run")
    results = list(experiment.results.filter(is_over | is_left).select_related(*related))
    pks = [result.pk for result in results]
    ExperimentResult.objects.filter(pk__in=pks).update(state=State.SCORING, claimed_at=now)
    for result in results:
        result.state = State.SCORING
        result.checks = []
    return results


def _cancel_open(experiment: Experiment) -> list[Run]:
    """Cancel what waits; return the runs to stop."""
    experiment.results.filter(state=State.WAITING).update(state=State.CANCELLED)
    live = experiment.results.filter(state=State.RUNNING, run__status__in=Run.LIVE)
    return [result.run for result in live.select_related("run") if result.run]


def _start_next(experiment: Experiment) -> list[Run]:
    busy = experiment.results.filter(state__in=[State.RUNNING, State.SCORING]).count()
    waiting = experiment.results.filter(state=State.WAITING).order_by("number")
    started = []
    for result in waiting.select_related("example", "origin")[: max(0, MAX_AT_ONCE - busy)]:
        try:
            started.append(_start_run(experiment, result))
        except QuotaExceeded as error:
            # Its limit of concurrent runs passes by itself; that of tokens doesn't.
            if not Run.objects.running().filter(user=experiment.started_by).exists():
                _give_up(experiment, str(error))
            break
        except AgentError as error:
            result.state, result.problem = State.ERROR, str(error)
            result.save(update_fields=["state", "problem"])
    return started


def _start_run(experiment: Experiment, result: ExperimentResult) -> Run:
    source = result.example or result.origin
    if source is None:
        raise AgentError("The example was deleted.")
    run = runs.prepare_experiment_run(
        resolve(experiment.agent, experiment.spec),
        experiment.spec,
        query=source.question if isinstance(source, Example) else source.query,
        history=source.history,
        topic=f"{EXPERIMENT_TOPIC_PREFIX}{experiment.pk}.{uuid4().hex[:12]}",
        user=experiment.started_by,
        origin=result.origin,
    )
    result.run = run
    result.state = State.RUNNING
    result.save(update_fields=["run", "state"])
    return run


def _give_up(experiment: Experiment, why: str) -> None:
    """End the experiment with a reason; what has been scored stays."""
    experiment.results.filter(state=State.WAITING).update(state=State.CANCELLED)
    experiment.problem = why
    experiment.save(update_fields=["problem"])


def _finish(experiment: Experiment) -> None:
    """Save the totals."""
    columns = ("state", "score", "judge_cost", "run", "run__cost")
    results = list(experiment.results.values(*columns))
    scored = [result["score"] for result in results if result["score"] is not None]
    # A run's cost includes its judge's.
    costs = [row["run__cost"] if row["run"] else row["judge_cost"] for row in results]
    known = [cost for cost in costs if cost is not None]
    experiment.score = round(sum(scored) / len(scored), 4) if scored else None
    experiment.passed = sum(result["state"] == State.PASSED for result in results)
    experiment.cost = sum(known) if known else None
    experiment.ended_at = timezone.now()
    stopped = Experiment.State.CANCELLED if experiment.is_to_stop else Experiment.State.DONE
    experiment.state = Experiment.State.FAILED if experiment.problem else stopped
    experiment.save()
    if experiment.target == Experiment.Target.PUBLISHED:
        with_score = experiment.results.exclude(score=None)
        score = with_score.filter(example=OuterRef("pk")).values("score")[:1]
        Example.objects.filter(pk__in=with_score.values("example")).update(
            score=Subquery(score), scored_at=experiment.ended_at
        )


def request_cancel(experiment: Experiment) -> None:
    """Ask for the experiment to be canceled; `advance` does it."""
    Experiment.objects.open().filter(pk=experiment.pk).update(is_to_stop=True)


def delete_old(before: datetime) -> None:
    """Delete old backtests and the details of old passes; scores stay for the trend."""
    old = Experiment.objects.filter(started_at__lt=before).exclude(
        state=Experiment.State.RUNNING
    )
    ExperimentResult.objects.filter(experiment__in=old).delete()
    old.filter(kind=Experiment.Kind.BACKTEST).delete()
