"""The list of problems: its filters and figures."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents.insight.problems import presentation


class SubjectFilter(admin.SimpleListFilter):
    """Filters by tool, provider or rule: those that problems have."""

    title = _("cause")
    parameter_name = "cause"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        problems = model_admin.get_queryset(request).exclude(subject="").order_by("subject")
        names = problems.values_list("subject", flat=True).distinct()[:100]
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(subject=self.value()) if self.value() else queryset


class ProblemList(ChangeList):
    """Adds the figures of the page's rows, in a few queries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        trends = presentation.trends(rows)
        people_counts = presentation.people_counts(rows)
        for row in rows:
            row.trend = trends[row.pk]
            row.people = people_counts.get(row.pk, 0)
        self.result_list = rows
