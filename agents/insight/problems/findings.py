"""What went wrong in finished runs, as findings with a cause."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, Case, Q, QuerySet, Value, When

from agents.engine import errors
from agents.engine.errors import without_models
from agents.engine.events import EventType
from agents.engine.loop import StopReason
from agents.engine.sentences import without_error_prefix
from agents.models import (
    AgentStep,
    Approval,
    GuardrailHit,
    GuardrailPattern,
    LanguageModel,
    Run,
)
from agents.models.runs.events import RunEvent
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX
from agents.review.models import Rating

from .fingerprints import Cause, clean_subject, normalize
from .models import Problem

Kind = Problem.Kind
Why = Approval.Why
FINISHED = [status for status in Run.Status if status not in Run.LIVE]
NO_TOOL = "There is no tool named "
GAVE_UP = "Gave up after "
NOT_CALLED = "Error: the tool wasn't called, because the run's budget is used up."
# A call that wasn't made: why the tool is paused is a problem of its own.
REFUSALS = ["BudgetExceeded", "QuotaExceeded", "CircuitOpen"]
# What a person refused, as opposed to questions and the run's own budget.
REFUSABLE = (Why.AGENT, Why.TOOL, Why.UNKNOWN, Why.PLAN, Why.STEP, Why.UNTRUSTED)
LIMIT_KINDS = {
    StopReason.MAX_STEPS: Kind.STEP_LIMIT,
    StopReason.DUPLICATE: Kind.LOOP,
    StopReason.TOOL_LIMIT: Kind.TOOL_LIMIT,
}
QUOTED = re.compile(r"'([^']+)'")
RUN_COLUMNS = (
    "pk",
    "agent",
    "agent_name",
    "agent_version",
    "model",
    "status",
    "stopped_reason",
    "detail",
    "query",
    "step_types",
    "started_at",
    "ended_at",
    "workflow",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause that occurred in a run."""

    run: Run
    cause: Cause
    occurred_at: datetime
    times: int = 1

    @property
    def fingerprint(self) -> str:
        return self.cause.fingerprint(str(self.run.agent_id or self.run.agent_name))


def finished_runs() -> QuerySet[Run]:
    """Return the finished runs that count: not tests, reruns, imports or hidden ones."""
    is_empty = Case(
        When(Q(answer="") & (Q(output=None) | Q(output__isnull=True)), then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )
    runs = Run.objects.listed().executed().filter(status__in=FINISHED, ended_at__isnull=False)
    counted = runs.exclude(topic__startswith=DRAFT_TOPIC_PREFIX).filter(origin_step=None)
    return counted.only(*RUN_COLUMNS).annotate(is_empty=is_empty)


def find(runs: Sequence[Run]) -> list[Finding]:
    """Return what went wrong in these runs, in a fixed number of queries."""
    if not runs:
        return []
    by_pk = {run.pk: run for run in runs}
    findings = [*_tool_errors(by_pk), *_blocks(by_pk), *_refusals(by_pk)]
    explained = {f.run.pk for f in findings if f.cause.kind == Kind.GUARDRAIL}
    # All names of models, because an error may be about a fallback model.
    models = LanguageModel.objects.values_list("label", "model")
    names = [name for row in models for text in row for name in (text, _short_name(text))]
    # The class of the last error of each failed run.
    failed = [run.pk for run in runs if run.status == Run.Status.FAILED]
    error_events = RunEvent.objects.filter(run__in=failed, type=EventType.ERROR)
    error_types = {
        event.run_id: str(event.data.get("type", ""))
        for event in error_events.order_by("run", "seq")
    }
    for run in runs:
        cause = _run_cause(run, error_types.get(run.pk, ""), names)
        if cause is not None and not (cause.kind == Kind.GUARDRAIL and run.pk in explained):
            occurred_at = run.ended_at or run.started_at
            findings.append(Finding(run=run, cause=cause, occurred_at=occurred_at))
    return findings


def find_ratings(ratings: Iterable[Rating]) -> list[Finding]:
    """Return bad ratings by reason; what the person wrote stays with the run."""
    return [
        Finding(
            run=rating.run,
            cause=Cause(stage="feedback", kind=Kind.RATING, subject=rating.reason),
            occurred_at=rating.rated_at,
        )
        for rating in ratings
    ]


def _run_cause(run: Run, error: str, names: Iterable[str]) -> Cause | None:
    """Return why the run as a whole went wrong; None if it didn't, or that isn't a problem."""
    reason = run.stopped_reason
    if run.status == Run.Status.FAILED:
        return _failure_cause(run, error, names)
    if run.status == Run.Status.BLOCKED:
        return Cause(stage="guardrail", kind=Kind.GUARDRAIL, message=_message(run, names))
    if run.status == Run.Status.INTERRUPTED:
        return Cause(stage="run", kind=Kind.INTERRUPTED)
    if reason in LIMIT_KINDS:
        kind = LIMIT_KINDS[StopReason(reason)]
        quoted = None if kind == Kind.STEP_LIMIT else QUOTED.search(run.detail)
        return Cause(stage="run", kind=kind, subject=clean_subject(quoted[1]) if quoted else "")
    if reason == StopReason.CANCELLED and run.detail.startswith(GAVE_UP):
        return Cause(stage="plan", kind=Kind.REPLAN_LIMIT)
    is_empty = run.workflow_id is None and getattr(run, "is_empty", False)
    if run.status == Run.Status.COMPLETED and is_empty:
        return Cause(stage="model", kind=Kind.EMPTY_ANSWER, subject=_provider(run))
    return None


def _failure_cause(run: Run, error: str, names: Iterable[str]) -> Cause | None:
    error_class = errors.error_class(error)
    if issubclass(error_class, errors.BudgetExceeded | errors.RunCancelled):
        return None
    if issubclass(error_class, errors.EmptyReply):
        return Cause(stage="model", kind=Kind.EMPTY_ANSWER, subject=_provider(run))
    message = _message(run, names)
    # The model that the message is about, which may be a fallback model.
    mentioned = [name for name in {run.model, *names} if name and name in run.detail]
    model = clean_subject(max(mentioned, key=len, default=run.model))
    if issubclass(error_class, errors.OutputDecodingFailed):
        return Cause(stage="output", kind=Kind.SCHEMA, message=message)
    if issubclass(error_class, errors.NoPlan):
        return Cause(stage="plan", kind=Kind.NO_PLAN, message=message)
    if issubclass(error_class, errors.PlanParseError):
        return Cause(
            stage="parse",
            kind=Kind.MODEL_ERROR,
            subject=_provider(run),
            message=message,
            model=model,
        )
    if issubclass(error_class, errors.ModelError | errors.AgentConnectionError):
        return Cause(
            stage="model",
            kind=Kind.MODEL_ERROR,
            subject=_provider(run),
            message=message,
            model=model,
        )
    return Cause(stage="run", kind=Kind.RUN_ERROR, message=message, model=model)


def _message(run: Run, names: Iterable[str]) -> str:
    return normalize(
        without_models(run.detail),
        [run.query],
        [run.model, _short_name(run.model), *names],
    )


def _short_name(model: str) -> str:
    """Return a model's name without its provider."""
    return model.rpartition("/")[2]


def _provider(run: Run) -> str:
    """Return the provider in the model's name, because versions of models are tags."""
    provider, slash, _name = run.model.partition("/")
    return clean_subject(provider) if slash else ""


def _tool_errors(runs: dict[int, Run]) -> Iterator[Finding]:
    """Yield failed calls, those of one cause and run together."""
    run_ids = [pk for pk, run in runs.items() if "|tool" in run.step_types]
    if not run_ids:
        return
    failed = AgentStep.objects.filter(
        run__in=run_ids, kind=AgentStep.Kind.TOOL, status=AgentStep.Status.FAILED
    )
    columns = [
        "run",
        "number",
        "action",
        "action_input",
        "observation",
        "started_at",
        "ended_at",
    ]
    failed_steps = list(failed.only(*columns).order_by("run", "number"))
    # Calls that weren't made because of a budget or a paused tool.
    refusals = RunEvent.objects.filter(
        run__in={step.run_id for step in failed_steps},
        type=EventType.TOOL_RESPONSE,
        data__error_type__in=REFUSALS,
    )
    refused = {(event.run_id, event.data["step"]) for event in refusals.only("run", "data")}
    groups: dict[tuple[int, Cause], list[AgentStep]] = defaultdict(list)
    for step in failed_steps:
        if (step.run_id, step.number) in refused or step.observation.startswith(NOT_CALLED):
            continue
        if without_error_prefix(step.observation).startswith(NO_TOOL):
            # One cause: a model can invent any number of names, and each would be a problem
            # with its alerts.
            message = f"{NO_TOOL.strip()} ‹text›"
            cause = Cause(stage="tool", kind=Kind.TOOL_ERROR, message=message)
        else:
            cause = Cause(
                stage="tool",
                kind=Kind.TOOL_ERROR,
                subject=clean_subject(step.action),
                message=normalize(step.observation, [step.action_input]),
            )
        groups[step.run_id, cause].append(step)
    for (pk, cause), steps in groups.items():
        occurred_at = steps[-1].ended_at or steps[-1].started_at
        yield Finding(run=runs[pk], cause=cause, occurred_at=occurred_at, times=len(steps))


def _blocks(runs: dict[int, Run]) -> Iterator[Finding]:
    run_ids = [pk for pk, run in runs.items() if "|guardrail" in run.step_types]
    if not run_ids:
        return
    hits = GuardrailHit.objects.filter(
        run__in=run_ids, action=GuardrailPattern.Action.BLOCK, is_observed=False
    ).values_list("run", "pattern__name", "stage", "at")
    groups: dict[tuple[int, Cause], list[datetime]] = defaultdict(list)
    for pk, name, stage, hit_at in hits.order_by("run", "pk"):
        cause = Cause(stage=stage, kind=Kind.GUARDRAIL, subject=clean_subject(name or ""))
        groups[pk, cause].append(hit_at)
    for (pk, cause), times in groups.items():
        yield Finding(run=runs[pk], cause=cause, occurred_at=times[-1], times=len(times))


def _refusals(runs: dict[int, Run]) -> Iterator[Finding]:
    """Yield calls that people rejected; not why, because that is their text."""
    refused = Approval.objects.filter(
        run__in=list(runs), verdict=Approval.Verdict.REJECTED, why__in=REFUSABLE
    )
    groups: dict[tuple[int, str], list[Any]] = defaultdict(list)
    decisions = refused.order_by("run", "pk").values_list("run", "tool", "decided_at")
    for pk, tool, decided_at in decisions:
        groups[pk, tool].append(decided_at)
    for (pk, tool), times in groups.items():
        run = runs[pk]
        cause = Cause(stage="approval", kind=Kind.REJECTED, subject=clean_subject(tool))
        occurred_at = times[-1] or run.ended_at or run.started_at
        yield Finding(run=run, cause=cause, occurred_at=occurred_at, times=len(times))
