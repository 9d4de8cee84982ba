"""Loads figures: from the added-up days, and from summaries where those aren't enough.

Days that changed since they were added up, a day that is cut short, and combinations that no
grain has are counted from summaries. Both give the same numbers.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from django.db.models import (
    Aggregate,
    Case,
    Count,
    F,
    IntegerField,
    Max,
    Q,
    QuerySet,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import LessThan

from agents.models import HiddenTopic

from . import histograms
from .models import (
    CALL_MEASURES,
    MEASURES,
    DailyFigures,
    DeletedFigures,
    Figures,
    ModelSummary,
    RunSummary,
    SummarizedDay,
    ToolSummary,
)
from .selection import Selection, Viewer, member_ids
from .totals import Totals
from .windows import Window

Grain = Figures.Grain
MANY_DAYS = 28
OWN_HISTOGRAMS = {"active": "active_class", "first": "first_class"}
RUN_HISTOGRAMS = {"active": "run__active_class", "first": "run__first_class"}
TOOL_HISTOGRAMS = {**RUN_HISTOGRAMS, "calls": "call_histogram"}
CALLED = "run__models__model"
TOOL_MEASURES = {"tool_calls": "calls", "tool_errors": "errors", "tool_timeouts": "timeouts"}


class By(StrEnum):
    """What figures are split by."""

    DAY = "day"
    BUCKET = "bucket"  # its number in the window
    AGENT = "agent"
    VERSION = "version"
    MODEL = "model"
    TOOL = "tool"
    PERSON = "person"


COLUMNS = {
    By.DAY: ("day",),
    By.BUCKET: ("bucket",),
    By.AGENT: ("agent_name",),
    By.VERSION: ("agent_name", "agent_version"),
    By.MODEL: ("model",),
    By.TOOL: ("tool",),
    By.PERSON: ("user_id",),
}
Columns = tuple[By, ...]
TotalsByKey = dict[tuple[Any, ...], Totals]


class FiguresQuery:
    """Counts the runs of a window that a viewer has selected."""

    def __init__(self, viewer: Viewer, window: Window, selection: Selection) -> None:
        self.viewer = viewer
        self.window = window
        self.selection = selection
        self.people: list[int] | None = None  # whose runs are counted; None for everyone's
        if selection.group is not None:
            members = member_ids(selection.group)
            self.people = [pk for pk in members if selection.person in (None, pk)]
        elif selection.person is not None:
            self.people = [selection.person]

    def total(self) -> Totals:
        return self.split().get((), Totals())

    def split(self, *by: By) -> TotalsByKey:
        """Return totals by the values of these columns; of none, by an empty tuple."""
        totals_by_key: TotalsByKey = defaultdict(Totals)
        grain = self._grain(by)
        if grain is None:
            self._add_live(totals_by_key, by, self.window.days)
            return totals_by_key
        live_days = self._live_days
        self._add_rolled(totals_by_key, by, grain, live_days)
        if live_days:
            self._add_live(totals_by_key, by, live_days)
        return totals_by_key

    def count_deleted(self) -> int:
        """Return how many counted runs no list has: they are deleted, or about to be."""
        if self.viewer.is_scoped:
            return 0
        topics = HiddenTopic.objects.filter(user=None).values("topic")
        waiting = self._summaries(self.window.days).filter(topic__in=topics).count()
        gone = self._deleted((), self.window.days).aggregate(runs=Sum("runs"))["runs"]
        return waiting + (0 if self.people is not None else gone or 0)

    def last_started(self, by: By) -> dict[Any, datetime]:
        """Return when the newest run with each tool or model began."""
        kinds: dict[By, type[ToolSummary] | type[ModelSummary]] = {
            By.TOOL: ToolSummary,
            By.MODEL: ModelSummary,
        }
        rows = kinds[by].objects.filter(self._counted(self.window.days, "run__", "run__day"))
        return dict(rows.order_by().values_list(by.value).annotate(Max("run__started_at")))

    def summaries(self) -> "QuerySet[RunSummary]":
        """Return the summaries of these runs, without those of deleted ones."""
        return self._summaries(self.window.days)

    def _grain(self, by: Columns) -> Figures.Grain | None:
        """Return the smallest grain with all columns, or None if there is none."""
        has_tool = self._has_tool(by)
        has_model = self._has_model(by)
        has_people = By.PERSON in by or self.people is not None
        if self.viewer.is_scoped or By.BUCKET in by or has_tool + has_model + has_people > 1:
            return None
        if has_tool or has_model:
            return Grain.TOOL if has_tool else Grain.MODEL
        has_setup = self.selection.has_setup or By.AGENT in by or By.VERSION in by
        if not has_people:
            return Grain.AGENT if has_setup else Grain.DAY
        return Grain.PERSON_AGENT if has_setup else Grain.PERSON

    def _has_tool(self, by: Columns) -> bool:
        return By.TOOL in by or bool(self.selection.tool)

    def _has_model(self, by: Columns) -> bool:
        return By.MODEL in by or bool(self.selection.model)

    @cached_property
    def _live_days(self) -> list[date]:
        changed = SummarizedDay.objects.filter(
            changes__gt=0, day__gte=self.window.first, day__lte=self.window.last
        )
        days = set(changed.values_list("day", flat=True))
        days |= {self.window.first} if self.window.since else set()
        days |= {self.window.last} if self.window.until else set()
        return sorted(days)

    def _add_rolled(
        self,
        totals_by_key: TotalsByKey,
        by: Columns,
        grain: Figures.Grain,
        excluded_days: Sequence[date],
    ) -> None:
        days = Q(day__gte=self.window.first, day__lte=self.window.last) & ~Q(
            day__in=excluded_days
        )
        rows = DailyFigures.objects.filter(days, self._setup(), self._parts(), grain=grain)
        if self.people is not None:
            rows = rows.filter(user__in=self.people)
        columns = _columns(by)
        _add_sums(totals_by_key, rows, columns, {name: name for name in (*MEASURES, "call_ms")})
        histogram_columns = ("active_histogram", "first_histogram", "call_histogram")
        for values in rows.order_by().values_list(*columns, *histogram_columns):
            key = values[: len(columns)]
            encoded = values[len(columns) :]
            totals_by_key[tuple(key)].add_histograms(*encoded)

    def _setup(self, prefix: str = "") -> Q:
        condition = Q()
        selection = self.selection
        if selection.agent:
            condition &= Q((f"{prefix}agent_name", selection.agent))
        if selection.version:
            condition &= Q((f"{prefix}agent_version", selection.version_number))
        return condition

    def _parts(self) -> Q:
        """Return the condition for added-up rows of one tool or one model."""
        chosen = {"tool": self.selection.tool, "model": self.selection.model}
        return Q(**{name: value for name, value in chosen.items() if value})

    def _summaries(self, days: Sequence[date]) -> "QuerySet[RunSummary]":
        rows = RunSummary.objects.filter(self._counted(days))
        model = self.selection.model
        return rows.filter(models__model=model) if model else rows

    def _counted(self, days: Sequence[date], prefix: str = "", day: str = "day") -> Q:
        """Return the condition for summaries that count; `prefix` is the path to them."""
        condition = self._setup(prefix) & Q((f"{prefix}is_hidden", False))
        condition &= Q((f"{day}__gte", days[0]), (f"{day}__lte", days[-1]))
        if len(days) != (days[-1] - days[0]).days + 1:
            condition &= Q((f"{day}__in", days))
        if self.window.since is not None:
            condition &= Q((f"{prefix}started_at__gte", self.window.since))
        if self.window.until is not None:
            condition &= Q((f"{prefix}started_at__lt", self.window.until))
        if self.people is not None:
            condition &= Q((f"{prefix}user__in", self.people))
        if self.viewer.is_scoped:
            condition &= Q((f"{prefix}run__in", self.viewer.visible_runs()))
        return condition

    def _add_live(self, totals_by_key: TotalsByKey, by: Columns, days: Sequence[date]) -> None:
        if self._has_tool(by):
            self._add_tools(totals_by_key, by, days)
        elif self._has_model(by):
            self._add_models(totals_by_key, by, days)
        else:
            self._add_summaries(totals_by_key, by, self._summaries(days))
        # Of deleted runs only the day is known, and not who asked.
        has_times = By.BUCKET in by or self.window.since is not None
        if not self.viewer.is_scoped and self.people is None and not has_times:
            for row in self._deleted(by, days):
                key = tuple(getattr(row, name, None) for name in _columns(by))
                totals_by_key[key].add_figures(row)

    def _add_summaries(
        self, totals_by_key: TotalsByKey, by: Columns, rows: "QuerySet[RunSummary]"
    ) -> None:
        columns = _columns(by)
        paths = {name: name for name in MEASURES}
        if By.BUCKET in by:  # in one pass: the expression for the bucket takes time
            rows = self._with_buckets(rows, by, "started_at")
            _add_sums(totals_by_key, rows, columns, paths, OWN_HISTOGRAMS)
            return
        _add_sums(totals_by_key, rows, columns, paths)
        for name in ("active", "first"):
            classes = rows.filter(**{f"{name}_class__isnull": False}).order_by()
            for *key, number, count in classes.values_list(*columns, f"{name}_class").annotate(
                count=Count("pk")
            ):
                getattr(totals_by_key[tuple(key)], name)[number] += count

    def _add_tools(self, totals_by_key: TotalsByKey, by: Columns, days: Sequence[date]) -> None:
        """Add runs by their tools, with the calls of that tool instead of all."""
        rows = ToolSummary.objects.all()
        day = "run__day"
        if self.selection.tool and len(days) > MANY_DAYS:
            # SQLite would read all runs of these days, but those of one tool are fewer.
            rows = rows.alias(own_day=Coalesce(day, day))
            day = "own_day"
        rows = rows.filter(self._counted(days, "run__", day))
        if self.selection.tool:
            rows = rows.filter(tool=self.selection.tool)
        paths = {name: TOOL_MEASURES.get(name, f"run__{name}") for name in MEASURES}
        if self.selection.model:
            rows = rows.filter(run__models__model=self.selection.model)
        if self._has_model(by):
            paths |= {name: f"run__models__{name}" for name in CALL_MEASURES}
        rows = self._with_buckets(rows, by, "run__started_at")
        columns = _run_columns(by, {"tool": "tool", "model": CALLED})
        _add_sums(
            totals_by_key, rows, columns, {**paths, "call_ms": "call_ms"}, TOOL_HISTOGRAMS
        )

    def _add_models(
        self, totals_by_key: TotalsByKey, by: Columns, days: Sequence[date]
    ) -> None:
        """Add runs by their models, with what calls of that model have used."""
        rows = ModelSummary.objects.filter(self._counted(days, "run__", "run__day"))
        if self.selection.model:
            rows = rows.filter(model=self.selection.model)
        rows = self._with_buckets(rows, by, "run__started_at")
        paths = {name: name if name in CALL_MEASURES else f"run__{name}" for name in MEASURES}
        columns = _run_columns(by, {"model": "model"})
        _add_sums(totals_by_key, rows, columns, paths, RUN_HISTOGRAMS)

    def _with_buckets(
        self, rows: "QuerySet[Any]", by: Columns, started_at: str
    ) -> "QuerySet[Any]":
        if By.BUCKET not in by:
            return rows
        edges = self.window.edges
        return rows.annotate(bucket=_bucket_of(started_at, edges[1:], range(len(edges))))

    def _deleted(self, by: Columns, days: Sequence[date]) -> "QuerySet[DeletedFigures]":
        """Return what is left of deleted runs.

        With a tool, their model is the one they started with: tools and models are saved
        separately.
        """
        grain = Grain.MODEL if self._has_model(by) else Grain.AGENT
        grain = Grain.TOOL if self._has_tool(by) else grain
        of_days = DeletedFigures.objects.filter(grain=grain, day__in=days)
        return of_days.filter(self._setup(), self._parts())


def _columns(by: Columns) -> list[str]:
    return [name for dimension in by for name in COLUMNS[dimension]]


def _run_columns(by: Columns, own: Mapping[str, str]) -> list[str]:
    """Return the columns that rows of a tool or a model are split by; others are the run's."""
    own = {**own, "bucket": "bucket"}
    return [own.get(name, f"run__{name}") for name in _columns(by)]


def _bucket_of(column: str, edges: Sequence[datetime], numbers: Sequence[int]) -> Any:
    """Return an expression for the bucket of a moment, as a binary search.

    Unlike truncated times it is the same on every database, and SQLite needs no function in
    Python for it.
    """
    if not edges:
        return Value(numbers[0])
    middle = len(edges) // 2
    below = _bucket_of(column, edges[:middle], numbers[: middle + 1])
    above = _bucket_of(column, edges[middle + 1 :], numbers[middle + 1 :])
    is_below = When(LessThan(F(column), edges[middle]), then=below)
    return Case(is_below, default=above, output_field=IntegerField())


def _add_sums(
    totals_by_key: TotalsByKey,
    rows: "QuerySet[Any]",
    columns: Sequence[str],
    paths: Mapping[str, str],
    histogram_paths: Mapping[str, str] | None = None,
) -> None:
    """Add the sums of these columns, grouped by others; the database adds them up.

    `histogram_paths` are columns of histograms, read in the same pass.
    """
    rows = rows.order_by()
    aggregates: dict[str, Aggregate] = {
        f"sum_{name}": _Sum(path) for name, path in paths.items()
    }
    aggregates.update(
        {f"all_{name}": _Joined(path) for name, path in (histogram_paths or {}).items()}
    )
    grouped = (
        rows.values(*columns).annotate(**aggregates)
        if columns
        else [rows.aggregate(**aggregates)]
    )
    for row in grouped:
        totals = totals_by_key[tuple(row[name] for name in columns)]
        totals.add_measures({name: row[f"sum_{name}"] for name in MEASURES})
        totals.call_ms += int(row.get("sum_call_ms") or 0)
        for name in histogram_paths or {}:
            histograms.add_joined(getattr(totals, name), row[f"all_{name}"] or "")


class _Joined(Aggregate):
    """Values as text, with spaces between them."""

    function = "STRING_AGG"
    template = "%(function)s(%(expressions)s, ' ')"

    def __init__(self, path: str) -> None:
        super().__init__(Cast(path, TextField()), output_field=TextField())

    def as_sqlite(self, compiler: Any, connection: Any, **options: Any) -> Any:
        return self.as_sql(compiler, connection, function="GROUP_CONCAT", **options)


class _Sum(Sum):
    """A sum whose values aren't converted one by one: there are dozens in a row."""

    def get_db_converters(self, connection: Any) -> list[Any]:
        return []
