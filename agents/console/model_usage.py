"""A model's last seven days: runs, calls, tokens, cost, latency and errors."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.utils import timezone

from agents.access.masking import mask_text
from agents.engine.text import shorten
from agents.models import AgentStep, LanguageModel, Run
from agents.models.runs import RunQuerySet
from agents.models.types import AnyUser
from agents.runs.engine_messages import translate

from .home.figures import bucket_of
from .usage import oldest_run_id

RECENT_PERIOD = timedelta(days=7)
BUCKETS = 28
MAX_CALLS = 5_000
MAX_ERRORS = 5
MAX_ERROR_CHARS = 200
# The steps that are requests to a model.
CALL_KINDS = (
    AgentStep.Kind.THOUGHT,
    AgentStep.Kind.ANSWER,
    AgentStep.Kind.PLAN,
    AgentStep.Kind.EVALUATION,
)
FALLBACK_NOTE = "model_fallback"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelError:
    """What a provider said, and the run in which it said so."""

    run: int
    at: datetime
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTotals:
    """Runs that were started with a model."""

    runs: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float | None = None
    last: datetime | None = None
    trend: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFigures:
    """Its calls, of the newest runs; `fallbacks` are those that another model answered."""

    calls: int
    errors: int
    fallbacks: int
    p50: float | None
    p95: float | None
    last_errors: list[ModelError]
    cached_share: float | None = None  # of the input tokens, from the provider's cache
    cache_savings: float | None = None

    @property
    def error_rate(self) -> float | None:
        return self.errors / self.calls if self.calls else None


def names_of(row: LanguageModel) -> list[str]:
    """Return the names under which runs know a model."""
    return [row.label, row.model]


def visible_runs(user: AnyUser) -> RunQuerySet | None:
    """Return the runs whose figures this user can see; None without the permission."""
    if not user.has_perm("agents.review_runs"):
        return None
    return Run.objects.for_user(user).listed().executed()


def load_totals(runs: RunQuerySet, now: datetime | None = None) -> dict[str, ModelTotals]:
    """Return the totals of all models by the runs' name for them, in one query."""
    now = now or timezone.now()
    step = RECENT_PERIOD / BUCKETS
    since = now - RECENT_PERIOD
    edges = [since + step * number for number in range(1, BUCKETS)]
    rows = (
        runs.filter(started_at__gte=since, pk__gte=oldest_run_id(since))
        .annotate(bucket=bucket_of("started_at", edges, range(BUCKETS)))
        .order_by()
        .values("model", "bucket")
        .annotate(
            runs=Count("pk"),
            failed=Count("pk", filter=Q(status=Run.Status.FAILED)),
            tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
            spent=Sum("cost"),
            last=Max("started_at"),
        )
    )
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        found[row["model"]].append(row)
    return {name: _total(parts) for name, parts in found.items()}


def _total(parts: Sequence[dict[str, Any]]) -> ModelTotals:
    trend = [0] * BUCKETS
    for part in parts:
        trend[part["bucket"]] += part["runs"]
    costs = [part["spent"] for part in parts if part["spent"] is not None]
    return ModelTotals(
        runs=sum(part["runs"] for part in parts),
        failed=sum(part["failed"] for part in parts),
        tokens=sum(part["tokens"] or 0 for part in parts),
        cost=sum(costs) if costs else None,
        last=max(part["last"] for part in parts),
        trend=trend,
    )


def totals_of(row: LanguageModel, totals: dict[str, ModelTotals]) -> ModelTotals:
    """Return a model's totals: those of its label, and of the provider's name for it."""
    parts = [totals[name] for name in dict.fromkeys(names_of(row)) if name in totals]
    if len(parts) < 2:
        return parts[0] if parts else ModelTotals(trend=[0] * BUCKETS)
    one, other = parts
    costs = [each.cost for each in parts if each.cost is not None]
    return ModelTotals(
        runs=one.runs + other.runs,
        failed=one.failed + other.failed,
        tokens=one.tokens + other.tokens,
        cost=sum(costs) if costs else None,
        last=max(filter(None, [one.last, other.last]), default=None),
        trend=[a + b for a, b in zip(one.trend, other.trend, strict=True)],
    )


def load_calls(row: LanguageModel, runs: RunQuerySet) -> CallFigures:
    """Return the figures of the newest calls; errors are masked, as for every reviewer."""
    since = timezone.now() - RECENT_PERIOD
    recent = runs.filter(
        started_at__gte=since, pk__gte=oldest_run_id(since), model__in=names_of(row)
    )
    steps = AgentStep.objects.filter(run__in=recent.order_by().values("pk"))
    calls: list[Any] = list(
        steps.filter(kind__in=CALL_KINDS, ended_at__isnull=False)
        .order_by("-pk")
        .exclude(attempts=0)  # replies from the cache
        .values_list("run", "status", "started_at", "ended_at", "notes")[:MAX_CALLS]
    )
    durations = sorted(
        (ended - began).total_seconds() for _run, _s, began, ended, _notes in calls
    )
    fallbacks = list(_fallbacks(row, calls))
    failed = sum(status == AgentStep.Status.FAILED for _run, status, *_rest in calls)
    errors = [*_failed_runs(recent), *fallbacks[:MAX_ERRORS]]
    prompt_cache = _prompt_cache(steps)
    return CallFigures(
        calls=len(calls),
        cached_share=prompt_cache["read"] / prompt_cache["sent"]
        if prompt_cache["sent"]
        else None,
        cache_savings=prompt_cache["saved"],
        errors=failed + len(fallbacks),
        fallbacks=len(fallbacks),
        p50=_percentile(durations, 0.5),
        p95=_percentile(durations, 0.95),
        last_errors=sorted(errors, key=lambda error: error.at, reverse=True)[:MAX_ERRORS],
    )


def _prompt_cache(steps: QuerySet[AgentStep]) -> dict[str, Any]:
    """Return what the provider's cache did for these steps."""
    return steps.filter(kind__in=CALL_KINDS).aggregate(
        sent=Sum("prompt_tokens"), read=Sum("cache_read_tokens"), saved=Sum("cache_savings")
    )


def _fallbacks(row: LanguageModel, calls: Iterable[Any]) -> Iterable[ModelError]:
    names = names_of(row)
    for run, _status, _began, ended, notes in calls:
        for note in notes if isinstance(notes, list) else ():
            if note.get("kind") == FALLBACK_NOTE and note.get("from") in names:
                yield _error(run, ended, str(note.get("message") or ""))


def _failed_runs(runs: RunQuerySet) -> Iterable[ModelError]:
    failed = runs.filter(status=Run.Status.FAILED).order_by("-pk")
    rows = failed.values_list("pk", "ended_at", "started_at", "detail")[:MAX_ERRORS]
    for pk, ended, started, detail in rows:
        yield _error(pk, ended or started, detail)


def _error(run: int, at: datetime, text: str) -> ModelError:
    sentence = shorten(mask_text(translate(text)), MAX_ERROR_CHARS)
    return ModelError(run=run, at=at, sentence=sentence)


def _percentile(values: Sequence[float], share: float) -> float | None:
    return values[min(len(values) - 1, int(len(values) * share))] if values else None
