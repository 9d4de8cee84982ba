"""Loads figures: from the added-up days, and from summaries where those aren't enough.

Days that changed since they were added up, a day that is cut short, and combinations that no
grain has are counted from summaries. Both give the same numbers.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Any

from django.db.models import Aggregate, Count, F, Q, QuerySet, Sum, TextField
from django.db.models.functions import Cast, Coalesce, TruncHour
from django.utils import timezone

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
RUN_HISTOGRAMS = {"active": "run__active_class", "first": "run__first_class"}
TOOL_HISTOGRAMS = {**RUN_HISTOGRAMS, "calls": "call_histogram"}
CALLED = "run__models__model"
TOOL_MEASURES = {"tool_calls": "calls", "tool_errors": "errors", "tool_timeouts": "timeouts"}


class By(StrEnum):
    """What figures are split by."""

    NOTHING = ""
    DAY = "day"
    HOUR = "hour"
    AGENT = "agent"
    VERSION = "version"
    MODEL = "model"
    TOOL = "tool"
    PERSON = "person"


COLUMNS = {
    By.DAY: ("day",),
    By.AGENT: ("agent_name",),
    By.VERSION: ("agent_name", "agent_version"),
    By.MODEL: ("model",),
    By.TOOL: ("tool",),
    By.PERSON: ("user_id",),
}
TotalsByKey = dict[tuple[Any, ...], Totals]
Days = Sequence[date]


class FiguresQuery:
    """Counts the runs of a window that a viewer has selected."""

    def __init__(self, viewer: Viewer, window: Window, selection: Selection) -> None:
        self.viewer, self.window, self.selection = viewer, window, selection
        self.people = _selected_people(selection)

    def total(self) -> Totals:
        return self.split(By.NOTHING).get((), Totals())

    def split(self, by: By) -> TotalsByKey:
        """Return totals by the values of these columns; of none, by an empty tuple."""
        totals_by_key: TotalsByKey = defaultdict(Totals)
        grain = self._grain(by)
        if grain is None:
            self._add_live(totals_by_key, by, self.window.days)
            return totals_by_key
        live_days = self._live_days()
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
        gone = self._deleted(By.NOTHING, self.window.days).aggregate(runs=Sum("runs"))["runs"]
        return waiting + (0 if self.people is not None else gone or 0)

    def summaries(self) -> "QuerySet[RunSummary]":
        """Return the summaries of these runs, without those of deleted ones."""
        return self._summaries(self.window.days)

    def _grain(self, by: By) -> Figures.Grain | None:
        """Return the smallest grain with all columns, or None if there is none."""
        has_tool, has_model = self._has_tool(by), self._has_model(by)
        has_people = by is By.PERSON or self.people is not None
        if self.viewer.is_scoped or by is By.HOUR or has_tool + has_model + has_people > 1:
            return None
        if has_tool or has_model:
            return Grain.TOOL if has_tool else Grain.MODEL
        has_setup = self.selection.has_setup or by in {By.AGENT, By.VERSION}
        if not has_people:
            return Grain.AGENT if has_setup else Grain.DAY
        return Grain.PERSON_AGENT if has_setup else Grain.PERSON

    def _has_tool(self, by: By) -> bool:
        return by is By.TOOL or bool(self.selection.tool)

    def _has_model(self, by: By) -> bool:
        return by is By.MODEL or bool(self.selection.model)

    def _live_days(self) -> list[date]:
        changed = SummarizedDay.objects.filter(
            changes__gt=0, day__gte=self.window.first, day__lte=self.window.last
        )
        days = set(changed.values_list("day", flat=True))
        return sorted(days | ({self.window.last} if self.window.until else set()))

    def _add_rolled(
        self,
        totals_by_key: TotalsByKey,
        by: By,
        grain: Figures.Grain,
        excluded_days: Sequence[date],
    ) -> None:
        days = Q(day__gte=self.window.first, day__lte=self.window.last) & ~Q(
            day__in=excluded_days
        )
        rows = DailyFigures.objects.filter(days, self._setup(), self._parts(), grain=grain)
        if self.people is not None:
            rows = rows.filter(user__in=self.people)
        self._add_figures(totals_by_key, by, rows)

    def _add_figures(self, totals_by_key: TotalsByKey, by: By, rows: "QuerySet[Any]") -> None:
        columns = COLUMNS.get(by, ())
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
        if self.window.until is not None:
            condition &= Q((f"{prefix}started_at__lt", self.window.until))
        if self.people is not None:
            condition &= Q((f"{prefix}user__in", self.people))
        if self.viewer.is_scoped:
            condition &= Q((f"{prefix}run__in", self.viewer.visible_runs()))
        return condition

    def _add_live(self, totals_by_key: TotalsByKey, by: By, days: Sequence[date]) -> None:
        if self._has_tool(by):
            self._add_tools(totals_by_key, by, days)
        elif self._has_model(by):
            self._add_models(totals_by_key, by, days)
        else:
            self._add_summaries(totals_by_key, by, self._summaries(days))
        if not self.viewer.is_scoped and self.people is None and by is not By.HOUR:
            for row in self._deleted(by, days):
                key = (None,) if by is By.PERSON else _key_of(row, by)
                totals_by_key[key].add_figures(row)

    def _add_summaries(
        self, totals_by_key: TotalsByKey, by: By, rows: "QuerySet[RunSummary]"
    ) -> None:
        rows, columns = _with_columns(rows, by)
        _add_sums(totals_by_key, rows, columns, {name: name for name in MEASURES})
        for name in ("active", "first"):
            classes = rows.filter(**{f"{name}_class__isnull": False}).order_by()
            for *key, number, count in classes.values_list(*columns, f"{name}_class").annotate(
                count=Count("pk")
            ):
                getattr(totals_by_key[tuple(key)], name)[number] += count

    def _add_tools(self, totals_by_key: TotalsByKey, by: By, days: Sequence[date]) -> None:
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
        columns = ["tool"] if by is By.TOOL else _run_columns(by, CALLED)
        if by is By.HOUR:
            rows = rows.annotate(hour=_hour("run__started_at"))
        _add_sums(
            totals_by_key, rows, columns, {**paths, "call_ms": "call_ms"}, TOOL_HISTOGRAMS
        )

    def _add_models(self, totals_by_key: TotalsByKey, by: By, days: Sequence[date]) -> None:
        """Add runs by their models, with what calls of that model have used."""
        rows = ModelSummary.objects.filter(self._counted(days, "run__", "run__day"))
        if self.selection.model:
            rows = rows.filter(model=self.selection.model)
        if by is By.HOUR:
            rows = rows.annotate(hour=_hour("run__started_at"))
        paths = {name: name if name in CALL_MEASURES else f"run__{name}" for name in MEASURES}
        _add_sums(totals_by_key, rows, _run_columns(by, "model"), paths, RUN_HISTOGRAMS)

    def _deleted(self, by: By, days: Sequence[date]) -> "QuerySet[DeletedFigures]":
        """Return what is left of deleted runs.

        With a tool, their model is the one they started with: tools and models are saved
        separately.
        """
        grain = Grain.MODEL if self._has_model(by) else Grain.AGENT
        grain = Grain.TOOL if self._has_tool(by) else grain
        of_days = DeletedFigures.objects.filter(grain=grain, day__in=days)
        return of_days.filter(self._setup(), self._parts())


def _run_columns(by: By, model: str) -> list[str]:
    """Return the columns that rows of a tool or a model are split by; `model` is its path."""
    if by is By.HOUR:
        return ["hour"]
    return [model] if by is By.MODEL else [f"run__{name}" for name in COLUMNS.get(by, ())]


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

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        return self.as_sql(compiler, connection, function="GROUP_CONCAT", **more)


class _Sum(Sum):
    """A sum whose values aren't converted one by one: there are dozens in a row."""

    def get_db_converters(self, connection: Any) -> list[Any]:
        return []


def _key_of(row: DeletedFigures, by: By) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in COLUMNS.get(by, ()))


def _with_columns(
    rows: "QuerySet[RunSummary]", by: By
) -> "tuple[QuerySet[RunSummary], tuple[str, ...]]":
    if by is By.HOUR:
        return rows.annotate(hour=_hour("started_at")), ("hour",)
    return rows, COLUMNS.get(by, ())


def _hour(column: str) -> TruncHour:
    return TruncHour(F(column), tzinfo=timezone.get_default_timezone())


def _selected_people(selection: Selection) -> list[int] | None:
    """Return whose runs are counted; None for everyone's."""
    if not selection.has_people:
        return None
    people: Iterable[int] = [selection.person] if selection.person else []
    if selection.group is None:
        return list(people)
    members = member_ids(selection.group)
    return [pk for pk in members if selection.person in (None, pk)]
