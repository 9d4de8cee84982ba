"""The dashboard's pages in the console: figures, their tables, and files of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access.requests import signed_in_user
from agents.web.presentation import dates

from . import catch_up, choices, csv_files, metrics, series, tables, versions, windows
from .figures import FiguresQuery
from .metrics import Metric
from .selection import PERMISSION, Selection, Viewer, runs_url
from .totals import Totals
from .windows import Window

MAX_CAUGHT_UP = 500
MAX_BEHIND = 1_000_000
CARDS = (
    (metrics.RUNS, "trace", "ink"),
    (metrics.COMPLETION, "done", "green"),
    (metrics.ERRORS, "failed", "red"),
    (metrics.COST, "cost", "violet"),
    (metrics.ACTIVE_P95, "timer", "blue"),
    (metrics.FIRST_P50, "answer", "blue"),
    (metrics.SATISFACTION, "good", "green"),
    (metrics.TOOL_CALLS, "tool", "ink"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    metric: Metric
    icon: str
    cell: tables.Cell
    change: str
    tone: str
    chart: Any
    note: str


class Choice:
    """What a request asks for: a period, another one, filters and a table."""

    def __init__(self, request: HttpRequest) -> None:
        parameters = request.GET
        self.now: datetime = timezone.now()
        self.viewer = Viewer(signed_in_user(request))
        self.period, self.window = windows.parse(parameters, self.now)
        self.against = windows.parse_against(parameters, self.now)
        self.selection = Selection.parse(parameters, sees_people=self.viewer.sees_people)
        by = parameters.get("by", "")
        self.by = by if by in self.dimensions else "agent"
        self.sort = parameters.get("sort", "")

    @cached_property
    def dimensions(self) -> Mapping[str, Any]:
        hidden = set() if self.viewer.sees_people else tables.PEOPLE
        return {name: text for name, text in tables.DIMENSIONS.items() if name not in hidden}

    @property
    def before(self) -> Window:
        return self.against or self.window.before(self.now)

    @property
    def parameters(self) -> dict[str, str]:
        """Return what links to this page keep."""
        parameters = self.selection.query()
        if self.period == windows.CUSTOM:
            parameters |= {"from": str(self.window.first), "to": str(self.window.last)}
        elif self.period != windows.DEFAULT_PERIOD:
            parameters["period"] = self.period
        if self.against:
            parameters |= {"vs_from": str(self.against.first), "vs_to": str(self.against.last)}
        return parameters | ({} if self.by == "agent" else {"by": self.by})

    def url(self, **changes: str) -> str:
        """Return a link to this page with some parameters changed; empty ones are removed."""
        parameters = {name: v for name, v in {**self.parameters, **changes}.items() if v}
        return f"?{urlencode(parameters)}"

    def query(self, window: Window | None = None) -> FiguresQuery:
        return FiguresQuery(self.viewer, window or self.window, self.selection)


def console_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a page of the console for users who may see the dashboard."""

    @never_cache
    @wraps(view)
    def checked(request: HttpRequest, **arguments: str) -> HttpResponse:
        if not (admin.site.has_permission(request) and request.user.has_perm(PERMISSION)):
            raise PermissionDenied
        return view(request, **arguments)

    return checked


@console_page
@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    _catch_up()
    choice = Choice(request)
    query = choice.query()
    previous = choice.query(choice.before).total()
    totals_series = series.load(query)
    current = (
        sum(totals_series.points.values(), Totals())
        if choice.window.length > 1
        else query.total()
    )
    menus = choices.build(choice.viewer, choice.selection)
    context = {
        **admin.site.each_context(request),
        "title": _("Dashboard"),
        "choice": choice,
        "menus": menus,
        "chips": choices.chips(menus, choice.parameters),
        "kept": _kept(choice),
        "periods": _periods(choice),
        "sentence": _sentence(choice),
        "cards": [_card(choice, current, previous, totals_series, *card) for card in CARDS],
        "axis": totals_series.axis,
        "groups": _compare(choice, current, previous),
        "headings": _headings(choice),
        "table": (table := tables.build(query, choice.by, choice.sort)),
        "rows": [(row, choice.url(**row.narrow) if row.narrow else "") for row in table.shown],
        "headers": _headers(choice),
        "tabs": _tabs(choice),
        "deleted": query.count_deleted(),
        "behind": catch_up.count_behind(MAX_BEHIND),
        "is_empty": not (current["runs"] or previous["runs"]),
    }
    return render(request, "admin/dashboard/overview.html", context)


@console_page
@require_GET
def export(request: HttpRequest, name: str) -> HttpResponse:
    """Return one table as a CSV file: by what is chosen, or all figures."""
    _catch_up()
    choice = Choice(request)
    file_name = f"dashboard-{choice.window.first}-{choice.window.last}"
    if name == "figures":
        current = choice.query().total()
        previous = choice.query(choice.before).total()
        rows = csv_files.comparison_rows(_compare(choice, current, previous), _headings(choice))
        return csv_files.response(rows, file_name)
    table = tables.build(choice.query(), choice.by, choice.sort)
    return csv_files.response(csv_files.table_rows(table), f"{file_name}-{choice.by}")


@console_page
@require_GET
def version_comparison(request: HttpRequest) -> HttpResponse:
    """Compare two versions of an agent: by default the two newest that have runs."""
    _catch_up()
    choice = Choice(request)
    agents = dict(choices.versions_by_agent(choice.viewer))
    agent = choice.selection.agent
    agent = agent if agent in agents else next(iter(agents), "")
    numbers = agents.get(agent, [])
    chosen = [_number(request.GET.get(name, ""), numbers) for name in ("old", "new")]
    new = chosen[1] or (numbers[0] if numbers else 0)
    old = chosen[0] or next((number for number in numbers if number < new), 0)
    context = {
        **admin.site.each_context(request),
        "title": _("Compare versions"),
        "choice": choice,
        "agents": agents,
        "agent": agent,
        "numbers": numbers,
        "old": old,
        "new": new,
        "periods": _periods(choice),
        "kept": {k: v for k, v in choice.parameters.items() if k in {"period", "from", "to"}},
        "sentence": span_text(choice.window),
    }
    if old and new:
        compared = (old, new)
        context["lines"] = versions.compare(choice.viewer, choice.window, agent, compared)
        context["links"] = [_version_url(choice, agent, number) for number in compared]
        if not choice.viewer.is_scoped:
            context["pairs"] = versions.load_pairs(agent, compared)
    return render(request, "admin/dashboard/versions.html", context)


def _version_url(choice: Choice, agent: str, number: int) -> str:
    selection = Selection(agent=agent, version=str(number))
    return runs_url(choice.viewer, choice.window, selection)


def _number(text: str, known: Sequence[int]) -> int:
    return next((number for number in known if str(number) == text), 0)


def _catch_up() -> None:
    """Count what has just happened; if the database is busy, the page is a little behind."""
    try:
        catch_up.catch_up(MAX_CAUGHT_UP)
    except OperationalError:
        return


def _compare(choice: Choice, current: Totals, previous: Totals) -> Any:
    compared_windows = (choice.window, choice.before)
    return tables.compare(current, previous, choice.viewer, compared_windows, choice.selection)


def _card(
    choice: Choice,
    current: Totals,
    previous: Totals,
    totals_series: series.Series,
    metric: Metric,
    icon: str,
    tone: str,
) -> Card:
    cell = tables.cell(metric, current, choice.viewer, choice.window, choice.selection)
    return Card(
        metric=metric,
        icon=icon,
        cell=cell,
        change=metrics.change_text(metric, current, previous),
        tone=metrics.tone(metric, current, previous),
        chart=totals_series.chart(metric, tone),
        note=_note(metric, current, cell),
    )


def _note(metric: Metric, totals: Totals, cell: tables.Cell) -> str:
    """Return what a card says below its figure."""
    match metric.key:
        case "cost" if totals["unpriced"]:
            text = ngettext(
                "%(count)d run with an unknown price",
                "%(count)d runs with an unknown price",
                totals["unpriced"],
            )
            return text % {"count": totals["unpriced"]}
        case "cost":
            cost_per_run = totals.cost_per_run
            return (
                _("%(cost)s per run") % {"cost": metrics.COST.text(cost_per_run)}
                if cost_per_run
                else ""
            )
        case "active_p95":
            return f"p50 {metrics.ACTIVE_P50.write(totals)}"
        case "first_p50":
            return f"p95 {metrics.FIRST_P95.write(totals)}"
        case "tool_calls":
            rate = metrics.TOOL_ERRORS.write(totals)
            return _("%(rate)s failed") % {"rate": rate} if totals["tool_calls"] else ""
        case "satisfaction":
            text = ngettext(
                "%(count)d rating, %(coverage)s of runs",
                "%(count)d ratings, %(coverage)s of runs",
                totals.ratings,
            )
            share = metrics.COVERAGE.write(totals)
            return text % {"count": totals.ratings, "coverage": share}
    return cell.title


def _kept(choice: Choice) -> dict[str, str]:
    """Return what the form of filters keeps besides its own fields."""
    own = {"agent", "version", "model", "tool", "group", "person", "from", "to"}
    own |= {"vs_from", "vs_to"}
    return {name: value for name, value in choice.parameters.items() if name not in own}


def _periods(choice: Choice) -> list[dict[str, Any]]:
    days = {"from": "", "to": ""}
    return [
        {
            "label": label,
            "url": choice.url(**days, period="" if key == windows.DEFAULT_PERIOD else key),
            "is_here": key == choice.period,
        }
        for key, (_count, label) in windows.PERIODS.items()
    ]


def _tabs(choice: Choice) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "url": f"{choice.url(by=name)}#by",
            "is_here": name == choice.by,
        }
        for name, label in choice.dimensions.items()
    ]


def _headers(choice: Choice) -> list[dict[str, Any]]:
    """Return the columns of the table with the links that sort by them."""
    columns = tables.TOOL_COLUMNS if choice.by == "tool" else tables.USUAL_COLUMNS
    headers = []
    for metric in columns:
        is_down = choice.sort == f"-{metric.key}"
        order = "descending" if is_down else "ascending" if choice.sort == metric.key else ""
        sort = metric.key if is_down else f"-{metric.key}"
        headers.append({"metric": metric, "order": order, "url": f"{choice.url(sort=sort)}#by"})
    return headers


def _sentence(choice: Choice) -> str:
    about = {"now": span_text(choice.window), "before": span_text(choice.before)}
    return _("%(now)s, compared with %(before)s") % about


def _headings(choice: Choice) -> list[str]:
    return [
        _("Figure"),
        span_text(choice.window),
        span_text(choice.before),
        pgettext("figures", "Change"),
    ]


def span_text(window: Window) -> str:
    """Return a period's days as text."""
    with timezone.override(timezone.get_default_timezone()):
        first = dates.short_date_text(windows.day_start(window.first))
        last = dates.short_date_text(windows.day_start(window.last))
    return first if window.first == window.last else f"{first} – {last}"
