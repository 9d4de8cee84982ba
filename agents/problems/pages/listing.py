"""The list of problems: tabs by status, filters, and figures of the rows on a page."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.problems import presentation
from agents.problems.models import Problem

Status = Problem.Status
TAB_PARAMETER = "view"
OPEN, MINE, RESOLVED, IGNORED, ALL = "open", "mine", "resolved", "ignored", "all"
TAB_LABELS = {
    OPEN: pgettext_lazy("problem", "Open"),
    MINE: _("Mine"),
    RESOLVED: _("Resolved"),
    IGNORED: _("Ignored"),
    ALL: _("All"),
}


def tab_filter(tab: str, request: HttpRequest) -> Q:
    match tab:
        case "mine":
            return Q(assignee=request.user.pk, status=Status.OPEN)
        case "resolved" | "ignored":
            return Q(status=tab)
        case "all":
            return Q()
    return Q(status=Status.OPEN)


class TabFilter(admin.SimpleListFilter):
    """Which tab is open; displayed above the list, not among its filters."""

    title = _("status")
    parameter_name = TAB_PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(TAB_LABELS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(tab_filter(self.value() or OPEN, request))


class SubjectFilter(admin.SimpleListFilter):
    """Filters by tool, provider or rule: those that problems have."""

    title = _("cause")
    parameter_name = "cause"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        known = model_admin.get_queryset(request).exclude(subject="").order_by("subject")
        names = known.values_list("subject", flat=True).distinct()[:100]
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(subject=self.value()) if self.value() else queryset


class ProblemList(ChangeList):
    """Adds the figures of the page's rows, in a few queries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        trends, people = presentation.trends(rows), presentation.people_counts(rows)
        for row in rows:
            row.trend, row.people = trends[row.pk], people.get(row.pk, 0)
        self.result_list = rows


def tabs(request: HttpRequest, rows: QuerySet[Problem]) -> list[dict[str, Any]]:
    """Return the tabs with their counts and links, which keep the other filters."""
    counts = rows.order_by().aggregate(
        **{name: Count("pk", filter=tab_filter(name, request)) for name in TAB_LABELS}
    )
    current_tab = request.GET.get(TAB_PARAMETER, "") or OPEN
    parameters = request.GET.copy()
    parameters.pop("p", None)
    entries = []
    for name, label in TAB_LABELS.items():
        parameters[TAB_PARAMETER] = name
        entry = {"label": label, "count": counts[name], "is_here": name == current_tab}
        entries.append(entry | {"url": f"?{parameters.urlencode()}", "name": name})
    return entries
