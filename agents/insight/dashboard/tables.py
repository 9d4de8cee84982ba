"""Tables: all figures of a period beside another one, and figures by agent, tool and so on."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.metering.figures.models import UNKNOWN_TOOL
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import DRAFT, Selection, Viewer
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import Window
from agents.models.catalog.rights import Role
from agents.models.types import LazyText
from agents.web.figures import metrics, series
from agents.web.figures.cards import Cell, cell
from agents.web.figures.metrics import DASH, Metric

TIME = "time"
GROUP = "group"
DIMENSIONS: dict[str, LazyText] = {
    "agent": gettext_lazy("Agent"),
    "version": gettext_lazy("Version"),
    "model": gettext_lazy("Model"),
    "tool": gettext_lazy("Tool"),
    GROUP: gettext_lazy("Group"),
    "person": gettext_lazy("User"),
    TIME: gettext_lazy("Time"),
}
PEOPLE = {GROUP, "person"}
MAX_ROWS = 50
USUAL_COLUMNS = metrics.pick(
    "runs",
    "completion",
    "errors",
    "cost",
    "cost_per_run",
    "tokens",
    "active_p50",
    "active_p95",
    "first_p50",
    "satisfaction",
)
TOOL_COLUMNS = metrics.pick(
    "runs",
    "tool_calls",
    "tool_errors",
    "tool_timeouts",
    "calls_p50",
    "calls_p95",
    "completion",
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One figure of two periods."""

    metric: Metric
    current: Cell
    previous: Cell
    change: str
    tone: str


def compare(
    current: Totals,
    previous: Totals,
    viewer: Viewer,
    windows: tuple[Window, Window],
    selection: Selection,
) -> list[tuple[str, LazyText, list[Comparison]]]:
    """Return all figures of two periods, in groups with their names and labels."""
    return [
        (
            name,
            label,
            [
                Comparison(
                    metric=metric,
                    current=cell(metric, current, viewer, windows[0], selection),
                    previous=cell(metric, previous, viewer, windows[1], selection),
                    change=metrics.change_text(metric, current, previous),
                    tone=metrics.tone(metric, current, previous),
                )
                for metric in metrics.in_group(name)
            ],
        )
        for name, label in metrics.GROUPS.items()
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
        keyed = _sorted(keyed, metrics.METRICS["runs"].value, is_descending=True)
    rows = []
    for row in keyed:
        selection = row.selection or Selection()
        cells = [
            cell(metric, row.totals, query.viewer, row.window, selection) for metric in columns
        ]
        if row.selection is None:  # no list of runs to link to
            cells = [replace(linked, url="") for linked in cells]
        rows.append(Row(label=row.label, cells=cells, narrow=row.narrow))
    return Table(
        dimension=dimension,
        columns=columns,
        rows=rows,
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
        label = _("Deleted runs and runs without a user")
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
        window = Window(first=moment, last=moment)
        if isinstance(moment, datetime):
            until = moment + timedelta(hours=1)
            days = query.window
            window = Window(first=days.first, last=days.last, since=moment, until=until)
        yield _Keyed(
            label=totals_series.label(moment),
            totals=totals,
            window=window,
            selection=query.selection,
        )


def _values(key: Hashable) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)
