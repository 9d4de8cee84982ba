"""What the console's own pages have in common, besides those that Django makes of rows."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from agents.models import Agent


def render_page(
    request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """Render a page with the console's menu around it."""
    context = {**admin.site.each_context(request), **context}
    return render(request, template, context, status=status)


def posted_form(
    model_admin: Any,
    request: HttpRequest,
    pk: int | None,
    *,
    data: Any = None,
    rows: QuerySet[Any] | None = None,
) -> Any:
    """Return the form of a row with the posted values, validated but not saved."""
    row = None
    if pk is None:
        may_save = model_admin.has_add_permission(request)
    else:
        if not model_admin.has_view_or_change_permission(request):
            raise PermissionDenied
        row = get_object_or_404(model_admin.model if rows is None else rows, pk=pk)
        may_save = model_admin.has_change_permission(request, row)
    if not may_save:
        raise PermissionDenied
    form_class = model_admin.get_form(request, row, change=row is not None)
    form = form_class(request.POST if data is None else data, instance=row)
    with transaction.atomic():  # the form may lock rows
        form.is_valid()
    return form


def form_problems(form: forms.BaseForm) -> list[tuple[str, list[str]]]:
    """Return the errors of each field with its label; those of the whole form have none."""
    return [
        (str(form.fields[name].label) if name in form.fields else "", list(map(str, errors)))
        for name, errors in form.errors.items()
    ]


def agent_links(agents: Iterable[Agent]) -> SafeString:
    """Return the names of agents with links to their pages."""
    page = "admin:agents_agent_change"
    links = [(reverse(page, args=[agent.pk]), agent.name) for agent in agents]
    return format_html_join(", ", '<a href="{}">{}</a>', links)
