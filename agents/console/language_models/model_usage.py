"""A model's last seven days: runs, calls, tokens, cost, latency and errors.

Calls are read from steps: summaries of runs have neither their latency nor their errors. Steps
have no index by time. Run ids are chronological, so the newest runs are selected by id.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min, Sum
from django.utils import timezone

from agents.access.masking import mask_text
from agents.db.sentences import translate
from agents.engine.text import shorten
from agents.metering.figures import catch_up
from agents.metering.figures.histograms import exact_percentile
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import last_days
from agents.models import AgentStep, LanguageModel, Run
from agents.models.runs.runs import RunQuerySet
from agents.models.types import AnyUser

RECENT_DAYS = 7
RECENT_PERIOD = timedelta(days=RECENT_DAYS)
BUCKET = timedelta(hours=6)
MAX_RUNS = 20_000
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
    """What a model was called for, the runs of each quarter of a day, and the newest one."""

    totals: Totals = field(default_factory=Totals)
    trend: list[int] = field(default_factory=list)
    last: datetime | None = None

    @property
    def runs(self) -> int:
        return self.totals["runs"]

    @property
    def failed(self) -> int:
        return self.totals["failed"]

    @property
    def tokens(self) -> int:
        return self.totals.tokens

    @property
    def cost(self) -> float | None:
        """Dollars; None if no call has a known price."""
        return self.totals.cost if self.totals.cost or not self.totals["unpriced"] else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFigures:
    """Its calls, of the newest runs; `fallbacks` are those that another model answered."""

    calls: int
    errors: int
    fallbacks: int
    p50: float | None  # ms
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
    return Run.objects.for_user(user).listed().executed().without_experiments()


def load_totals(user: AnyUser, rows: Iterable[LanguageModel]) -> dict[int, ModelTotals]:
    """Return the totals of models, which runs know by their label or the provider's name."""
    catch_up.catch_up_for_page()
    window = last_days(RECENT_DAYS, timezone.now(), BUCKET)
    query = FiguresQuery(Viewer(user), window, Selection())
    totals_by_name = query.split(By.MODEL)
    buckets = query.split(By.MODEL, By.BUCKET)
    last = query.last_started(By.MODEL)
    return {
        row.pk: ModelTotals(
            totals=sum((totals_by_name.get((name,), Totals()) for name in names), Totals()),
            trend=[
                sum(
                    buckets[name, number]["runs"] for name in names if (name, number) in buckets
                )
                for number in range(len(window.edges))
            ],
            last=max((last[name] for name in names if name in last), default=None),
        )
        for row in rows
        for names in [set(names_of(row))]
    }


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
    durations = [
        (ended - began).total_seconds() * 1000 for _run, _s, began, ended, _notes in calls
    ]
    names = names_of(row)
    fallbacks = [
        _error(run, ended, str(note.get("message") or ""))
        for run, _status, _began, ended, notes in calls
        for note in (notes if isinstance(notes, list) else ())
        if note.get("kind") == FALLBACK_NOTE and note.get("from") in names
    ]
    failed_calls = sum(status == AgentStep.Status.FAILED for _run, status, *_rest in calls)
    failed_runs = recent.filter(status=Run.Status.FAILED).order_by("-pk")
    errors = [
        _error(pk, ended or started, detail)
        for pk, ended, started, detail in failed_runs.values_list(
            "pk", "ended_at", "started_at", "detail"
        )[:MAX_ERRORS]
    ]
    errors += fallbacks[:MAX_ERRORS]
    prompt_cache = steps.filter(kind__in=CALL_KINDS).aggregate(
        sent=Sum("prompt_tokens"), read=Sum("cache_read_tokens"), saved=Sum("cache_savings")
    )
    return CallFigures(
        calls=len(calls),
        cached_share=prompt_cache["read"] / prompt_cache["sent"]
        if prompt_cache["sent"]
        else None,
        cache_savings=prompt_cache["saved"],
        errors=failed_calls + len(fallbacks),
        fallbacks=len(fallbacks),
        p50=exact_percentile(durations, 0.5),
        p95=exact_percentile(durations, 0.95),
        last_errors=sorted(errors, key=lambda error: error.at, reverse=True)[:MAX_ERRORS],
    )


def _error(run: int, time: datetime, text: str) -> ModelError:
    sentence = shorten(mask_text(translate(text)), MAX_ERROR_CHARS)
    return ModelError(run=run, at=time, sentence=sentence)


def oldest_run_id(since: datetime) -> int:
    """Return the first run id to include."""
    newest = Run.objects.order_by("-pk").values_list("pk", flat=True)
    runs = Run.objects.filter(started_at__gte=since).aggregate(first=Min("pk"))
    oldest = newest[MAX_RUNS - 1 : MAX_RUNS].first()
    return max(runs["first"] or 0, oldest or 0)
