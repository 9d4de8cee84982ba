"""The dashboard's pages in the console: figures, their tables, and files of them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property, wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access.requests import signed_in_user
from agents.metering.figures import catch_up, windows
from agents.metering.figures.query import FiguresQuery
from agents.metering.figures.selection import PERMISSION, Selection, Viewer, runs_url
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import Window
from agents.web.figures import cards, metrics
from agents.web.presentation.formats import dates

from . import choices, csv_files, tables, versions

MAX_BEHIND = 1_000_000
CARDS = metrics.pick(
    "runs",
    "completion",
    "errors",
    "cost",
    "active_p95",
    "first_p50",
    "satisfaction",
    "tool_calls",
)


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
    catch_up.catch_up_for_page()
    choice = Choice(request)
    query = choice.query()
    figures = cards.load_overview(query, choice.query(choice.before), CARDS)
    menus = choices.build(choice.viewer, choice.selection)
    fields = {"agent", "version", "model", "tool", "group", "person"}
    fields |= {"from", "to", "vs_from", "vs_to"}
    spans = {"now": span_text(choice.window), "before": span_text(choice.before)}
    context = {
        **admin.site.each_context(request),
        "title": _("Dashboard"),
        "choice": choice,
        "menus": menus,
        "chips": choices.chips(menus, choice.parameters),
        # What the form of filters keeps besides its own fields.
        "kept": {k: value for k, value in choice.parameters.items() if k not in fields},
        "periods": _periods(choice),
        "sentence": _("%(now)s, compared with %(before)s") % spans,
        "cards": figures.cards,
        "axis": figures.axis,
        "groups": _compare(choice, figures.current, figures.previous),
        "headings": _headings(choice),
        "table": (table := tables.build(query, choice.by, choice.sort)),
        "rows": [(row, choice.url(**row.narrow) if row.narrow else "") for row in table.shown],
        "headers": _headers(choice),
        "tabs": [
            {"label": label, "url": f"{choice.url(by=by)}#by", "is_here": by == choice.by}
            for by, label in choice.dimensions.items()
        ],
        "deleted": query.count_deleted(),
        "behind": catch_up.count_behind(MAX_BEHIND),
        "is_empty": figures.is_empty,
    }
    return render(request, "admin/dashboard/overview.html", context)


@console_page
@require_GET
def export(request: HttpRequest, name: str) -> HttpResponse:
    """Return one table as a CSV file: by what is chosen, or all figures."""
    catch_up.catch_up_for_page()
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
    catch_up.catch_up_for_page()
    choice = Choice(request)
    agents = dict(choices.versions_by_agent(choice.viewer))
    agent = choice.selection.agent
    agent = agent if agent in agents else next(iter(agents), "")
    numbers = agents.get(agent, [])
    by_text = {str(number): number for number in numbers}
    new = by_text.get(request.GET.get("new", "")) or next(iter(numbers), 0)
    old = by_text.get(request.GET.get("old", "")) or next((n for n in numbers if n < new), 0)
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
        context["links"] = [
            runs_url(choice.viewer, choice.window, Selection(agent=agent, version=str(number)))
            for number in compared
        ]
        if not choice.viewer.is_scoped:
            context["pairs"] = versions.load_pairs(agent, compared)
    return render(request, "admin/dashboard/versions.html", context)


def _compare(choice: Choice, current: Totals, previous: Totals) -> Any:
    compared_windows = (choice.window, choice.before)
    return tables.compare(current, previous, choice.viewer, compared_windows, choice.selection)


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
