"""Computes the summary of a run from its facts.

What another run has paid for, because this one is a rerun of it, isn't counted again.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.engine.events import EventType
from agents.engine.loop import StopReason
from agents.metering.budgets import pricing
from agents.models import AgentStep, Run, RunEvent

from . import histograms
from .facts import Facts, Step, add_feedback, read_facts
from .models import (
    CALL_MEASURES,
    UNKNOWN_TOOL,
    VERSION,
    ModelSummary,
    RunSummary,
    TitleUsage,
    ToolSummary,
)

NANOS = 1_000_000_000
OUTCOME_OF_STATUS = {
    Run.Status.COMPLETED: "completed",
    Run.Status.FAILED: "failed",
    Run.Status.BLOCKED: "blocked",
    Run.Status.INTERRUPTED: "interrupted",
}
OUTCOME_OF_STOP = {
    StopReason.CANCELLED: "cancelled",
    StopReason.BUDGET: "over_budget",
}
FAILED = AgentStep.Status.FAILED
CALL_STATUSES = (AgentStep.Status.DONE, AgentStep.Status.FAILED, AgentStep.Status.UNKNOWN)
TOKEN_PARTS = ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
MODEL_KINDS = (AgentStep.Kind.THOUGHT, AgentStep.Kind.ANSWER)
HIT_ACTIONS = ("block", "mask", "warn")  # observing changes nothing
MAX_TOOL_CHARS = 64  # of the tag by which the list of runs finds a tool
Kind = AgentStep.Kind


@dataclass(frozen=True, slots=True)
class SummaryRows:
    """The rows of one run; `regenerated` are earlier answers that it replaces."""

    summary: RunSummary
    tools: list[ToolSummary]
    models: list[ModelSummary]
    has_title: bool = False
    regenerated: Sequence[int] = ()


def build(pks: Sequence[int]) -> list[SummaryRows]:
    """Return the summaries of these runs, as far as they have ended."""
    return [_summary(facts) for facts in read_facts(pks)]


def refresh_feedback(row: RunSummary) -> None:
    """Count the ratings, the correction and the regeneration of a run again."""
    facts = Facts(run={"pk": row.run_id, "topic": row.topic})
    add_feedback({row.run_id: facts})
    for name, count in _feedback_figures(facts).items():
        setattr(row, name, count)


def add_late_title(built: SummaryRows, title: TitleUsage) -> None:
    """Add a title to the figures of a run that was summarized before it."""
    facts = Facts(run={}, free_models=pricing.free_models({title.model}))
    sums: Counter[str] = Counter()
    _add_title(facts, title, sums)
    model_summary = next(
        (summary for summary in built.models if summary.model == title.model), None
    )
    if model_summary is None:
        model_summary = ModelSummary(run_id=title.run_id, model=title.model)
        built.models.append(model_summary)
    for row in (built.summary, model_summary):
        for name, amount in sums.items():
            setattr(row, name, getattr(row, name) + amount)
        row.unpriced = int(row.unpriced_calls > 0)


def day_of(moment: datetime) -> date:
    """Return a moment's day in the installation's time zone."""
    return timezone.localtime(moment, timezone.get_default_timezone()).date()


def _summary(facts: Facts) -> SummaryRows:
    run = facts.run
    tools = _tool_summaries(facts)
    models = _model_summaries(facts)
    # A stop and a spent budget are neither success nor failure.
    outcome = OUTCOME_OF_STATUS.get(run["status"]) or OUTCOME_OF_STOP.get(
        run["stopped_reason"], "limited"
    )
    replans = sum(
        version > 1
        for number, version in facts.plan_versions.items()
        if not facts.is_replayed(number)
    )
    retries = sum(
        step.attempts - 1
        for step in facts.steps.values()
        if step.attempts > 1 and not facts.is_replayed(step.number)
    )
    hits = [
        step.action
        for step in facts.steps.values()
        if step.kind == Kind.GUARDRAIL and step.action in HIT_ACTIONS
    ]
    used = {name: sum(getattr(summary, name) for summary in models) for name in CALL_MEASURES}
    is_cached = bool(facts.usage) and all(usage.get("cached") for usage in facts.usage)
    row = RunSummary(
        run_id=run["pk"],
        user_id=run["user_id"],
        topic=run["topic"],
        day=day_of(run["started_at"]),
        started_at=run["started_at"],
        ended_at=run["ended_at"],
        agent_name=run["agent_name"],
        agent_version=run["agent_version"] or 0,
        model=run["model"],
        last_seq=facts.last_seq,
        is_hidden=facts.is_hidden,
        version=VERSION,
        runs=1,
        **{outcome: 1},
        planned=int(bool(facts.plan_versions)),
        replans=replans,
        replanned=int(replans > 0),
        **used | {"unpriced": int(used["unpriced_calls"] > 0)},
        cached=int(is_cached),
        **_feedback_figures(facts),
        guardrail_hits=len(hits),
        guardrail_blocks=hits.count("block"),
        guarded=int(bool(hits)),
        tool_calls=sum(tool.calls for tool in tools),
        tool_errors=sum(tool.errors for tool in tools),
        tool_timeouts=sum(tool.timeouts for tool in tools),
        timed_out=int(facts.has_model_timeout or any(tool.timeouts for tool in tools)),
        retries=retries,
        fallbacks=facts.fallbacks,
    )
    _add_times(row, facts)
    return SummaryRows(row, tools, models, facts.title is not None, facts.regenerated)


def _model_summaries(facts: Facts) -> list[ModelSummary]:
    """Return a row for each model that was called, or the one that would have been."""
    sums_by_model: dict[str, Counter[str]] = {}
    for usage in facts.usage:
        model = facts.model_of(usage)
        sums = sums_by_model.setdefault(model, Counter())
        sums["model_calls"] += not usage.get("cached")
        sums["input_tokens"] += usage["prompt_tokens"]
        sums["output_tokens"] += usage["completion_tokens"]
        for name in TOKEN_PARTS:
            if amount := usage.get(name):
                sums[name] += amount
        # What our cache and the provider's have saved; the latter can cost more.
        own_cache = (usage.get("cached") or {}).get("saved") or {}
        savings = float(own_cache.get("cost") or 0) + float(usage.get("cache_savings") or 0)
        if savings:
            sums["saved_cost"] += round(savings * NANOS)
        if usage["cost"] is not None:
            sums[_cost_line(facts, usage)] += round(usage["cost"] * NANOS)
        elif usage["prompt_tokens"] and model not in facts.free_models:
            sums["unpriced_calls"] += 1
    if facts.title is not None:
        _add_title(facts, facts.title, sums_by_model.setdefault(facts.title.model, Counter()))
    if not sums_by_model:
        sums_by_model[facts.run["model"]] = Counter()
    for sums in sums_by_model.values():
        sums["unpriced"] = int(sums["unpriced_calls"] > 0)
    pk = facts.run["pk"]
    return [ModelSummary(run_id=pk, model=name, **sums) for name, sums in sums_by_model.items()]


def _add_title(facts: Facts, title: TitleUsage, sums: Counter[str]) -> None:
    sums.update(
        model_calls=1, input_tokens=title.input_tokens, output_tokens=title.output_tokens
    )
    if title.cost is not None:
        sums["title_cost"] += title.cost
    elif title.model not in facts.free_models:
        sums["unpriced_calls"] += 1


def _cost_line(facts: Facts, usage: Mapping[str, Any]) -> str:
    """Return what a call was for: its step's place in the run says so."""
    ancestors = list(facts.ancestors(usage["step"]))
    if any(step.kind in {Kind.GUARDRAIL, Kind.EVALUATION} for step in ancestors):
        return "check_cost"
    if any(facts.plan_versions.get(step.number, 1) > 1 for step in ancestors):
        return "replan_cost"
    step = ancestors[0] if ancestors else None
    if step and step.kind in MODEL_KINDS and step.status == AgentStep.Status.FAILED:
        return "retry_cost"
    return "answer_cost"


def _feedback_figures(facts: Facts) -> dict[str, int]:
    up = facts.feedback["ratings_up"]
    down = facts.feedback["ratings_down"]
    return {
        "ratings_up": up,
        "ratings_down": down,
        "rated": int(up + down > 0),
        "corrected": int(facts.feedback["corrected"] > 0),
        "regenerated": int(facts.is_regenerated),
    }


def _tool_summaries(facts: Facts) -> list[ToolSummary]:
    """Return a row for each tool that the list of runs finds this run by."""
    calls: dict[str, list[Step]] = defaultdict(list)
    rescued: Counter[str] = Counter()  # calls that failed, so that a fallback made them
    for step in facts.steps.values():
        if step.kind != Kind.TOOL or step.status == AgentStep.Status.UNSTARTED:
            continue
        is_unknown = step.action in facts.unknown_tools
        name = UNKNOWN_TOOL if is_unknown else step.action[:MAX_TOOL_CHARS]
        tool_steps = calls[name]  # also without a call: one was rejected
        if step.status in CALL_STATUSES and not facts.is_replayed(step.number):
            tool_steps.append(step)
            if step.failed_tool:
                rescued[step.failed_tool[:MAX_TOOL_CHARS]] += 1
    tool_summaries = []
    for tool in sorted(calls.keys() | rescued.keys()):
        steps = calls[tool]
        failures = sum(step.status == AgentStep.Status.FAILED for step in steps)
        durations = [
            (step.ended_at - step.started_at).total_seconds() * 1000
            for step in steps
            if step.ended_at is not None and step.attempts  # results from a cache take no time
        ]
        tool_summary = ToolSummary(
            run_id=facts.run["pk"],
            tool=tool,
            calls=len(steps) + rescued[tool],
            errors=failures + rescued[tool],
            timeouts=sum(step.number in facts.late_calls for step in steps),
            call_ms=round(sum(max(0.0, duration) for duration in durations)),
            call_histogram=histograms.encode(histograms.of(durations)),
        )
        tool_summaries.append(tool_summary)
    return tool_summaries


def _add_times(row: RunSummary, facts: Facts) -> None:
    """Add active time and time to the first word; cached answers would flatter both."""
    run = facts.run
    if row.cached or run["seconds"] is None:
        return
    active = max(0.0, run["seconds"] - run["waited"]) * 1000
    row.active_count = 1
    row.active_ms = round(active)
    row.active_class = histograms.class_of(active)
    answers = [s for s in facts.steps.values() if s.kind == Kind.ANSWER and not s.depth]
    # A rerun repeats what another one has streamed.
    if not answers or run["origin_step"] is not None:
        return
    if times := _first_deltas(run["pk"], max(step.first_seq for step in answers)):
        # Without waiting for people.
        passed = (times[0] - run["started_at"]).total_seconds() - run["waited"]
        first = max(0.0, passed) * 1000
        row.first_count = 1
        row.first_ms = round(first)
        row.first_class = histograms.class_of(first)


@compiled_query
def _first_deltas(run_id: int, seq: int) -> QuerySet[RunEvent, datetime]:
    deltas = RunEvent.objects.filter(run=run_id, seq__gte=seq, type=EventType.DELTA.value)
    return deltas.order_by("seq").values_list("time", flat=True)[:1]
