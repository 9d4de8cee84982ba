"""Tables: all figures of a period beside another one, and figures by agent, tool and so on."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models.rights import Role
from agents.models.types import LazyText

from . import metrics, series
from .figures import By, FiguresQuery
from .metrics import DASH, Metric
from .models import UNKNOWN_TOOL
from .selection import DRAFT, Selection, Viewer, runs_url
from .totals import Totals
from .windows import Window

TIME, GROUP = "time", "group"
DIMENSIONS: dict[str, LazyText] = {
    "agent": gettext_lazy("Agent"),
    "version": gettext_lazy("Version"),
    "model": gettext_lazy("Model"),
    "tool": gettext_lazy("Tool"),
    GROUP: gettext_lazy("Group"),
    "person": gettext_lazy("Person"),
    TIME: gettext_lazy("Time"),
}
PEOPLE = {GROUP, "person"}
MAX_ROWS = 50
USUAL_COLUMNS = (
    *(metrics.RUNS, metrics.COMPLETION, metrics.ERRORS, metrics.COST, metrics.COST_PER_RUN),
    *(metrics.TOKENS, metrics.ACTIVE_P50, metrics.ACTIVE_P95, metrics.FIRST_P50),
    metrics.SATISFACTION,
)
CALLS_P50 = Metric(
    key="calls_p50",
    label=gettext_lazy("p50 per call"),
    value=lambda t: t.call_percentile(0.5),
    text=metrics.seconds_text,
)
CALLS_P95 = Metric(
    key="calls_p95",
    label=gettext_lazy("p95 per call"),
    value=lambda t: t.call_percentile(0.95),
    text=metrics.seconds_text,
)
TOOL_COLUMNS = (
    *(metrics.RUNS, metrics.TOOL_CALLS, metrics.TOOL_ERRORS),
    *(metrics.ALL_METRICS["tool_timeouts"], CALLS_P50, CALLS_P95, metrics.COMPLETION),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A figure with the runs behind it; `note` is what a rate is of."""

    text: str
    value: float | None
    url: str = ""
    note: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    label: str
    cells: Sequence[Cell]
    narrow: Mapping[str, str] | None = None  # parameters that select only this row


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    dimension: str
    columns: Sequence[Metric]
    rows: Sequence[Row]
    sort: str

    @property
    def label(self) -> LazyText:
        return DIMENSIONS[self.dimension]

    @property
    def shown(self) -> Sequence[Row]:
        return self.rows[:MAX_ROWS]

    @property
    def is_cut(self) -> bool:
        return len(self.rows) > MAX_ROWS


def cell(
    metric: Metric, totals: Totals, viewer: Viewer, window: Window, selection: Selection
) -> Cell:
    value = metric.value(totals)
    note = title = ""
    if metric.basis is not None and (basis := metric.basis(totals))[1]:
        params = {"part": metrics.count_text(basis[0]), "whole": metrics.count_text(basis[1])}
        title = _("%(part)s of %(whole)s") % params
        note = title if metric.key in {"satisfaction", "coverage"} else ""
    has_runs = bool(totals["runs"]) and value is not None and bool(value or metric.is_rate)
    url = runs_url(viewer, window, selection, *metric.terms, sort=metric.sort)
    return Cell(
        text=DASH if value is None else metric.text(value),
        value=value,
        url=url if has_runs else "",
        note=note,
        title=title,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One figure now and before."""

    metric: Metric
    now: Cell
    before: Cell
    change: str
    tone: str


def compare(
    current: Totals,
    previous: Totals,
    viewer: Viewer,
    windows: tuple[Window, Window],
    selection: Selection,
) -> list[tuple[metrics.MetricGroup, list[Comparison]]]:
    """Return all figures of two periods, in groups."""
    return [
        (
            group,
            [
                Comparison(
                    metric=metric,
                    now=cell(metric, current, viewer, windows[0], selection),
                    before=cell(metric, previous, viewer, windows[1], selection),
                    change=metrics.change_text(metric, current, previous),
                    tone=metrics.tone(metric, current, previous),
                )
                for metric in group.metrics
            ],
        )
        for group in metrics.GROUPS
    ]


def build(query: FiguresQuery, dimension: str, sort: str = "") -> Table:
    """Return figures by a dimension, sorted by a column; time in its order."""
    columns = TOOL_COLUMNS if dimension == "tool" else USUAL_COLUMNS
    keyed = list(_split(query, dimension))
    name = sort.removeprefix("-")
    sort_metric = next((metric for metric in columns if metric.key == name), None)
    if sort_metric is not None:
        keyed = _sorted(keyed, sort_metric.value, is_descending=sort.startswith("-"))
    elif dimension != TIME:
        keyed = _sorted(keyed, metrics.RUNS.value, is_descending=True)
    return Table(
        dimension=dimension,
        columns=columns,
        rows=[_row(query, columns, row) for row in keyed],
        sort=sort if sort_metric else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keyed:
    """A row before it is written: `window` and `selection` are its own."""

    label: str
    totals: Totals
    window: Window
    selection: Selection | None
    narrow: Mapping[str, str] | None = None


def _row(query: FiguresQuery, columns: Sequence[Metric], keyed: _Keyed) -> Row:
    cells = [
        cell(metric, keyed.totals, query.viewer, keyed.window, keyed.selection or Selection())
        for metric in columns
    ]
    if keyed.selection is None:
        cells = [Cell(text=c.text, value=c.value, note=c.note, title=c.title) for c in cells]
    return Row(label=keyed.label, cells=cells, narrow=keyed.narrow)


def _sorted(
    rows: Iterable[_Keyed], value: Callable[[Totals], float | None], *, is_descending: bool
) -> list[_Keyed]:
    """Return rows by a figure; those without one are last."""
    pairs = [(value(row.totals), row) for row in rows]
    with_value = [(number, row) for number, row in pairs if number is not None]
    with_value.sort(key=lambda pair: pair[0], reverse=is_descending)
    return [row for _n, row in with_value] + [row for number, row in pairs if number is None]


def _split(query: FiguresQuery, dimension: str) -> Iterable[_Keyed]:
    if dimension == TIME:
        return _by_time(query)
    if dimension == GROUP:
        return _by_group(query)
    if dimension == "person":
        return _by_person(query)
    if dimension == "version":
        return _by_version(query)
    return _by_name(query, dimension)


def _by_name(query: FiguresQuery, dimension: str) -> Iterable[_Keyed]:
    for key, totals in query.split(By(dimension)).items():
        [name] = _values(key)
        is_unknown = dimension == "tool" and name == UNKNOWN_TOOL
        yield _Keyed(
            label=_("unknown tool") if is_unknown else name or DASH,
            totals=totals,
            window=query.window,
            selection=query.selection.with_value(dimension, name),
            narrow={dimension: name},
        )


def _by_version(query: FiguresQuery) -> Iterable[_Keyed]:
    for key, totals in query.split(By.VERSION).items():
        agent, number = _values(key)
        version = str(number) if number else DRAFT
        selection = query.selection.with_value("agent", agent).with_value("version", version)
        params = {"name": agent, "number": number}
        label = _("%(name)s, version %(number)d") if number else _("%(name)s, no version")
        yield _Keyed(
            label=label % params,
            totals=totals,
            window=query.window,
            selection=selection,
            narrow={"agent": agent, "version": version},
        )


def _by_person(query: FiguresQuery) -> Iterable[_Keyed]:
    totals_by_key = query.split(By.PERSON)
    people = User.objects.select_related("profile").in_bulk(
        [pk for key in totals_by_key for pk in _values(key) if pk is not None]
    )
    query.viewer.usernames |= {pk: person.get_username() for pk, person in people.items()}
    for key, totals in totals_by_key.items():
        [pk] = _values(key)
        person = people.get(pk)
        label = _("Deleted runs, or without a user")
        if person is not None:
            name = getattr(getattr(person, "profile", None), "display_name", "")
            label = name or person.get_username()
        yield _Keyed(
            label=label,
            totals=totals,
            window=query.window,
            selection=query.selection.with_value("person", pk) if person else None,
            narrow={"person": str(pk)} if person else None,
        )


def _by_group(query: FiguresQuery) -> Iterable[_Keyed]:
    """Yield groups as they are now; who is in two of them counts in both."""
    totals_by_key = query.split(By.PERSON)
    groups = Group.objects.exclude(name__in=Role.values)
    if query.selection.group is not None:
        groups = groups.filter(pk=query.selection.group)
    members: dict[int, list[int]] = {}
    pairs = User.groups.through.objects.filter(group__in=groups)
    for user_id, pk in pairs.values_list("user_id", "group_id"):
        members.setdefault(pk, []).append(user_id)
    for group in groups.order_by("name"):
        member_totals = [
            totals_by_key[user_id,]
            for user_id in members.get(group.pk, ())
            if (user_id,) in totals_by_key
        ]
        yield _Keyed(
            label=group.name,
            totals=sum(member_totals, Totals()),
            window=query.window,
            selection=query.selection.with_value("group", group.pk),
            narrow={"group": str(group.pk)},
        )


def _by_time(query: FiguresQuery) -> Iterable[_Keyed]:
    totals_series = series.load(query)
    for moment, totals in totals_series.points.items():
        yield _Keyed(
            label=totals_series.label(moment),
            totals=totals,
            window=_window_of(moment, query.window),
            selection=query.selection,
        )


def _window_of(moment: date | datetime, window: Window) -> Window:
    if isinstance(moment, datetime):
        until = moment + timedelta(hours=1)
        return Window(first=window.first, last=window.last, since=moment, until=until)
    return Window(first=moment, last=moment)


def _values(key: Hashable) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)
