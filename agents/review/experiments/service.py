"""Starts, advances and cancels experiments.

An experiment is rows: any process can advance it, and each call does what is possible now. It
is called when one of its runs has ended and at every periodic check, so an experiment continues
after a restart, with workers and without.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from agents import runs
from agents.access import audit, masking
from agents.catalog import agent_spec
from agents.catalog.agent_spec import AgentSpec
from agents.catalog.language_models import model_setups
from agents.catalog.tools import tool_factory
from agents.console.tool_admin import tool_tester
from agents.db import claims, database
from agents.db.periodic import periodic
from agents.engine.errors import AgentError, QuotaExceeded
from agents.engine.loop import effect
from agents.engine.sentences import Sentence
from agents.models import Agent, AgentStep, GuardrailPattern, Run, ToolRegistration
from agents.models.runs.runs import EXPERIMENT_TOPIC_PREFIX
from agents.review.models import Example, ExampleSet

from .errors import ExperimentRejected
from .models import Experiment, ExperimentResult
from .scoring import hits, scoring, targets
from .sources import sources
from .sources.sources import ChosenExamples, Question, Source

logger = logging.getLogger(__name__)

Kind = Experiment.Kind
State = ExperimentResult.State
MAX_AT_ONCE = 2
MAX_RUNNING = 3
DEADLINE_SECONDS = 120
MAX_DEADLINE_SECONDS = 1_800
TURN_SECONDS = 5.0


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
    return _start_agent(Kind.BACKTEST, agent, spec, source, user, options or Options())


def start_examples(
    source: ExampleSet | ChosenExamples,
    agent: Agent,
    spec: AgentSpec,
    user: User | None,
    options: Options,
) -> Experiment:
    """Start a pass over an example set or certain examples."""
    return _start_agent(Kind.EXAMPLES, agent, spec, source, user, options)


def start_guardrail(
    rule: GuardrailPattern, questions: Sequence[Question], user: User
) -> Experiment:
    """Start a backtest of a rule, which needn't be saved, on texts of past runs."""
    _check_running(user)
    experiment = Experiment(
        kind=Kind.GUARDRAIL,
        spec=hits.describe(rule),
        target=Experiment.Target.DRAFT,
        judge_model=rule.model,
        started_by=user,
    )
    results = _new_results(experiment, questions)
    with transaction.atomic():
        experiment.save()
        ExperimentResult.objects.bulk_create(results)
        if not rule.is_model_check and user.has_perm(masking.UNMASK_PERMISSION):
            audit.record_search(user, "run", rule.pattern, "backtest")
    return experiment


def _start_agent(
    kind: str,
    agent: Agent,
    spec: AgentSpec,
    source: Source,
    user: User | None,
    options: Options,
) -> Experiment:
    questions = sources.load(source, agent, user)
    if not questions.chosen:
        raise ExperimentRejected(
            _("There is nothing to run. Choose other runs, or add examples first.")
        )
    _check_running(user)
    experiment = Experiment(
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
        started_by=user,
    )
    tested = targets.tested_agent(agent.pk, spec)
    try:
        model_setups.ensure_usable(tested, model_setups.model_name(tested), user)
    except AgentError as error:
        raise ExperimentRejected(f"{error} {error.advice}") from error
    is_published = options.target == Experiment.Target.PUBLISHED
    if options.is_live and not is_published and user is not None:
        # As in the test chat of a draft, which can change what a tool counts as.
        links = agent_spec.resolve(spec).links
        if denial := tool_tester.denial(user, [link.tool for link in links]):
            raise ExperimentRejected(denial)
    results = _new_results(experiment, questions.chosen)
    # All is loaded before it, because other writers wait for its end.
    with transaction.atomic():
        experiment.save()
        ExperimentResult.objects.bulk_create(results)
        audit.record(
            user,
            audit.BACKTEST_STARTED if kind == Kind.BACKTEST else audit.EXAMPLES_RUN,
            agent,
            experiment=experiment.pk,
            questions=experiment.count,
            live=experiment.is_live,
        )
    return experiment


def _check_running(user: User | None) -> None:
    running = Experiment.objects.open().filter(started_by=user)
    if user is not None and running.count() >= MAX_RUNNING:
        raise ExperimentRejected(
            _("You already have %(most)d experiments in progress. Wait, or cancel one.")
            % {"most": MAX_RUNNING}
        )


def _new_results(
    experiment: Experiment, questions: Sequence[Question]
) -> list[ExperimentResult]:
    experiment.count = len(questions)
    return [
        ExperimentResult(
            experiment=experiment,
            number=number,
            name=question.name,
            example=question.example,
            origin=question.origin,
        )
        for number, question in enumerate(questions, start=1)
    ]


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
    """Advance all that are open, in turns."""
    for pk in await database.run(list, Experiment.objects.open().values_list("pk", flat=True)):
        try:
            await advance(pk, seconds=TURN_SECONDS)
        except Exception:  # the next check tries again
            logger.exception("Can't advance experiment %s.", pk)


def experiment_of(run: Run) -> int:
    """Return the experiment of a run, by its topic."""
    return int(run.topic.removeprefix(EXPERIMENT_TOPIC_PREFIX).partition(".")[0])


@dataclass(slots=True)
class _Work:
    """What the event loop has to do after a transaction."""

    started: list[Run] = field(default_factory=list)
    stopped: list[Run] = field(default_factory=list)
    ended: list[ExperimentResult] = field(default_factory=list)


async def advance(pk: int, *, seconds: float = inf) -> None:
    """Score what has ended and start what is next, for about this long."""
    until = time.monotonic() + seconds
    while True:
        work = await database.run(_advance, pk)
        for run in work.started:
            runs.launch(run)
        for run in work.stopped:
            await runs.stop(run)
        await _score(work.ended)
        is_idle = not work.ended and not work.stopped
        if is_idle or time.monotonic() > until:
            return


async def _score(results: Sequence[ExperimentResult]) -> None:
    """Score these results of an experiment: those of a guardrail all at once."""
    is_guardrail = bool(results) and results[0].experiment.kind == Kind.GUARDRAIL
    batches = [results] if is_guardrail else [[result] for result in results]
    for batch in batches:
        try:
            await (hits.score(batch) if is_guardrail else scoring.score(batch[0]))
        except Exception:  # what can't be scored must not stop the others
            logger.exception("Can't score the results %s.", [result.pk for result in batch])
            problem = Sentence("Something went wrong on the server.")
            for result in batch:
                release = partial(claims.release, result, state=State.ERROR, problem=problem)
                await database.run(release)


@transaction.atomic
def _advance(pk: int) -> _Work:
    work = _Work()
    experiment = Experiment.objects.select_for_update().open().filter(pk=pk).first()
    if experiment is None:
        return work
    is_over = Q(state=State.RUNNING) & (Q(run=None) | ~Q(run__status__in=Run.LIVE))
    is_left = Q(state=State.SCORING) & claims.is_due(timezone.now())
    work.ended = _claim(experiment, is_over | is_left)
    if experiment.is_to_stop:
        experiment.results.filter(state=State.WAITING).update(state=State.CANCELLED)
        live = experiment.results.filter(state=State.RUNNING, run__status__in=Run.LIVE)
        work.stopped = [result.run for result in live.select_related("run") if result.run]
    elif experiment.kind == Kind.GUARDRAIL:
        work.ended += _claim(experiment, Q(state=State.WAITING), hits.batch_size(experiment))
    else:
        work.started = _start_next(experiment)
    if not experiment.results.filter(state__in=ExperimentResult.OPEN).exists():
        _finish(experiment)
    return work


def _claim(
    experiment: Experiment, condition: Q, limit: int | None = None
) -> list[ExperimentResult]:
    """Return results to score, which no other process scores meanwhile."""
    waiting = experiment.results.filter(condition)
    claimed = claims.take_all(waiting, limit, state=State.SCORING)
    if experiment.kind != Kind.GUARDRAIL:
        claimed = claimed.select_related("example", "origin", "run")
    results = list(claimed)
    for result in results:
        result.experiment = experiment
        result.checks = []
    return results


def _start_next(experiment: Experiment) -> list[Run]:
    busy = experiment.results.filter(state__in=[State.RUNNING, State.SCORING]).count()
    waiting = experiment.results.filter(state=State.WAITING).order_by("number")
    started = []
    for result in waiting.select_related("example", "origin")[: max(0, MAX_AT_ONCE - busy)]:
        source = result.example or result.origin
        try:
            if source is None:
                raise AgentError(Sentence(gettext_noop("The example was deleted.")))
            result.run = runs.prepare_experiment_run(
                targets.tested_agent(experiment.agent_id, experiment.spec),
                experiment.spec,
                query=source.question if isinstance(source, Example) else source.query,
                history=source.history,
                topic=f"{EXPERIMENT_TOPIC_PREFIX}{experiment.pk}.{uuid4().hex[:12]}",
                user=experiment.started_by,
                origin=result.origin,
            )
            result.state = State.RUNNING
            result.save(update_fields=["run", "state"])
            started.append(result.run)
        except QuotaExceeded as error:
            # Its limit of concurrent runs passes by itself; that of tokens doesn't, so the
            # experiment ends. What has been scored stays.
            if not Run.objects.running().filter(user=experiment.started_by).exists():
                experiment.results.filter(state=State.WAITING).update(state=State.CANCELLED)
                experiment.problem = str(error)
                experiment.save(update_fields=["problem"])
            break
        except AgentError as error:
            result.state = State.ERROR
            result.problem = str(error)
            result.save(update_fields=["state", "problem"])
    return started


def _finish(experiment: Experiment) -> None:
    """Save the totals."""
    columns = ("state", "score", "judge_cost", "run", "run__cost")
    results = list(experiment.results.values(*columns))
    scored = [result["score"] for result in results if result["score"] is not None]
    # A run's cost includes its judge's.
    costs = [row["run__cost"] if row["run"] else row["judge_cost"] for row in results]
    known_costs = [cost for cost in costs if cost is not None]
    experiment.score = round(sum(scored) / len(scored), 4) if scored else None
    experiment.passed = sum(result["state"] == State.PASSED for result in results)
    experiment.cost = sum(known_costs) if known_costs else None
    experiment.ended_at = timezone.now()
    stopped = Experiment.State.CANCELLED if experiment.is_to_stop else Experiment.State.DONE
    experiment.state = Experiment.State.FAILED if experiment.problem else stopped
    experiment.save()
    if experiment.kind == Kind.GUARDRAIL:
        experiment.results.filter(state=State.PASSED).delete()  # mostly, and they say nothing
    if experiment.target == Experiment.Target.PUBLISHED:
        with_score = experiment.results.exclude(score=None)
        score = with_score.filter(example=OuterRef("pk")).values("score")[:1]
        Example.objects.filter(pk__in=with_score.values("example")).update(
            score=Subquery(score), scored_at=experiment.ended_at
        )


def request_cancel(experiment: Experiment) -> None:
    """Ask for the experiment to be canceled; `advance` does it."""
    Experiment.objects.open().filter(pk=experiment.pk).update(is_to_stop=True)


def delete_old(started_before: datetime) -> None:
    """Delete old backtests and the details of old passes; scores stay for the trend."""
    old = Experiment.objects.filter(started_at__lt=started_before).exclude(
        state=Experiment.State.RUNNING
    )
    ExperimentResult.objects.filter(experiment__in=old).delete()
    old.exclude(kind=Kind.EXAMPLES).delete()
