"""Databases: connections, what agents can read of them, and queries to try."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.access import audit
from agents.catalog import databases
from agents.models import DatabaseConnection
from agents.models.secret import UnreadableSecret
from agents.models.types import LazyText
from agents.runs.engine_messages import translate
from agents.tools.database.query_tool import QueryTool
from agents.web.presentation.badges import badge
from agents.web.presentation.dates import timestamp

from . import circuit_breakers, figures
from .database_form import DatabaseForm, TablesField
from .model_admin import ConsoleAdmin

Kind, State = DatabaseConnection.Kind, DatabaseConnection.State
TONES = {State.READY: "green", State.FAILED: "red", State.UNKNOWN: "amber"}
FORM_TEMPLATE = "admin/agents/databaseconnection/tried.html"
GRANTS = {
    Kind.POSTGRESQL: "CREATE ROLE ashiato LOGIN PASSWORD '…';\n"
    "GRANT USAGE ON SCHEMA public TO ashiato;\n"
    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO ashiato;",
    Kind.MYSQL: "CREATE USER ashiato@'%' IDENTIFIED BY '…';\n"
    "GRANT SELECT ON shop.* TO ashiato@'%';",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The result of a query to try, as the agent would get it."""

    columns: list[str]
    rows: list[list[Any]]
    is_truncated: bool
    error: str
    took: str


@admin.register(DatabaseConnection)
class DatabaseConnectionAdmin(ConsoleAdmin):
    form = DatabaseForm
    can_rename_deleted = False  # the name is part of its tools' names
    list_display = ["name", "kind", "condition", "enabled", "table_count", "used_by"]
    list_display += ["tool", "last_checked"]
    list_editable = ["enabled"]
    list_filter = ["kind", "state", "enabled"]
    search_fields = ["name", "host", "database", "description"]
    actions = ["test_selected", "enable_selected", "disable_selected"]
    formfield_overrides = {models.JSONField: {"form_class": TablesField}}
    readonly_fields = ["tool", "used_by"]

    # Columns

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def condition(self, row: DatabaseConnection) -> SafeString:
        state, error = _current_state(row)
        shown = badge(state.label, TONES[state])
        if not error:
            return shown
        return format_html('{}<div class="help">{}</div>', shown, translate(error))

    @admin.display(description=gettext_lazy("tables"))
    def table_count(self, row: DatabaseConnection) -> str:
        found = databases.check(row).schema if row.kind == Kind.SQLITE else None
        total = len(found.tables if found else (row.schema or {}).get("tables", ()))
        if row.tables is None:
            return str(total) if total else "—"
        return _("%(count)s of %(total)s") % {"count": len(row.tables), "total": total or "?"}

    @admin.display(description=gettext_lazy("used by agents"))
    def used_by(self, row: DatabaseConnection) -> SafeString | LazyText:
        agents = {agent.pk: agent for tool in row.tools.all() for agent in tool.agents.all()}
        links = [
            (reverse("admin:agents_agent_change", args=[pk]), agents[pk].name) for pk in agents
        ]
        names = format_html_join(", ", '<a href="{}">{}</a>', links)
        return format_html("<span>{}</span>", names) if names else "—"

    @admin.display(description=gettext_lazy("tool"))
    def tool(self, row: DatabaseConnection) -> SafeString | str:
        for tool in row.tools.all():
            address = reverse("admin:agents_toolregistration_change", args=[tool.pk])
            return format_html('<a href="{}"><code>{}</code></a>', address, tool.name)
        return "—"

    @admin.display(description=gettext_lazy("last checked"), ordering="checked_at")
    def last_checked(self, row: DatabaseConnection) -> LazyText:
        return timestamp(row.checked_at) if row.checked_at else "—"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("tools__agents")

    # The form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        first = (
            ["name", "kind", "enabled"] if obj is None else ["name", "kind", "tool", "enabled"]
        )
        if obj is not None and obj.is_sample:
            return [(None, {"fields": ["name", "tool", "enabled"]}), *REST]
        return [(None, {"fields": first}), *ADDRESS, *REST]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Make the name read-only, because agents know the tool by it."""
        return ["name", *self.readonly_fields] if obj else list(self.readonly_fields)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The sample can be disabled, but it would return at the next start."""
        is_sample = obj is not None and obj.is_sample
        return super().has_delete_permission(request, obj) and not is_sample

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        circuit_breakers.reset_tool(obj.tool_name)
        transaction.on_commit(partial(self._check_saved, request, obj))

    def _check_saved(self, request: HttpRequest, row: DatabaseConnection) -> None:
        """Connect once it is saved, because the model needs the tables."""
        found = databases.check(row)
        databases.save_check(row.pk, found)
        if found.error:
            messages.warning(request, f"{row.name}: {translate(found.error)}")

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **about: Any
    ) -> HttpResponse:
        row = about.get("obj")
        if row:
            row.state, row.last_error = _current_state(row)
        context["powers"] = row.powers if row else []
        context["grant"] = GRANTS.get(Kind(row.kind)) if row else ""
        context["model_sees"] = _description(row) if row else ""
        return super().render_change_form(request, context, *args, **about)

    # Actions

    @admin.action(description=gettext_lazy("Test connection"), permissions=["change"])
    def test_selected(self, request: HttpRequest, rows: Any) -> None:
        for row in rows[:20]:
            self._test(request, row)

    @admin.action(description=gettext_lazy("Enable"), permissions=["change"])
    def enable_selected(self, request: HttpRequest, rows: Any) -> None:
        self._switch(request, rows, is_on=True)

    @admin.action(description=gettext_lazy("Disable"), permissions=["change"])
    def disable_selected(self, request: HttpRequest, rows: Any) -> None:
        self._switch(request, rows, is_on=False)

    def _switch(self, request: HttpRequest, rows: Any, *, is_on: bool) -> None:
        changed = list(rows.exclude(enabled=is_on))
        for row in changed:
            with transaction.atomic():  # one by one: other writers wait for its end
                row.enabled = is_on
                row.save(update_fields=["enabled"])
                self.log_change(request, row, [{"changed": {"fields": ["enabled"]}}])
        done = ngettext(
            "%(count)d database changed.", "%(count)d databases changed.", len(changed)
        )
        messages.success(request, done % {"count": len(changed)})

    def _test(self, request: HttpRequest, row: DatabaseConnection) -> None:
        found = databases.check(row)
        databases.save_check(row.pk, found)
        audit.record(request.user, audit.SERVER_TESTED, row, name=row.name)
        if found.error:
            messages.error(request, f"{row.name}: {translate(found.error)}")
            return
        count = len(found.schema.tables) if found.schema else 0
        sentence = _("%(name)s: connected to %(version)s, %(count)d tables.")
        about = {"name": row.name, "version": found.version, "count": count}
        messages.success(request, sentence % about)

    # Pages

    def get_urls(self) -> list[URLPattern]:
        def admin_path(route: str, view: Any, name: str) -> URLPattern:
            full_name = f"agents_databaseconnection_{name}"
            return path(route, self.admin_site.admin_view(view), name=full_name)

        own = [
            admin_path("try/", self.try_view, "try"),
            admin_path("<int:pk>/try/", self.try_view, "try"),
            admin_path("query/", self.query_view, "query"),
            admin_path("<int:pk>/query/", self.query_view, "query"),
            admin_path("<int:pk>/test/", self.test_view, "test"),
        ]
        return [*own, *super().get_urls()]

    def test_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Connect with the saved values, read the tables, and report the result."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        row = get_object_or_404(DatabaseConnection, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._test(request, row)
        return redirect(reverse("admin:agents_databaseconnection_change", args=[pk]))

    def try_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """Connect with the values in the form, without saving them."""
        if (form := self._posted_form(request, pk)) is None:
            return HttpResponseNotAllowed(["POST"])
        found = None
        if form.is_valid():
            row = form.wanted()
            audit.record(request.user, audit.SERVER_TESTED, _subject(row), name=row.name)
            found = databases.check(row)
        widget = form.fields["tables"].widget
        if found and found.schema:
            widget.schema = found.schema
        context = {"found": found, "error": translate(found.error) if found else ""}
        context["grant"] = GRANTS.get(Kind(form.instance.kind)) if found else ""
        return self._render(request, form, _("Test connection"), context)

    def query_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """Run a query with the values in the form, through both layers like an agent's."""
        if (form := self._posted_form(request, pk)) is None:
            return HttpResponseNotAllowed(["POST"])
        result, sql = None, request.POST.get("sql", "").strip()
        if form.is_valid():
            row = form.wanted()
            details = {"name": row.tool_name, "arguments": ["sql"]}
            audit.record(request.user, audit.TOOL_RUN, _subject(row), **details)
            result = run_query(row, sql)
        return self._render(request, form, _("Test query"), {"result": result, "sql": sql})

    def _posted_form(self, request: HttpRequest, pk: int | None) -> DatabaseForm | None:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row = get_object_or_404(DatabaseConnection, pk=pk) if pk else None
        may = (
            self.has_change_permission(request, row)
            if row
            else self.has_add_permission(request)
        )
        if not may:
            raise PermissionDenied
        if request.method != "POST":
            return None
        form: DatabaseForm = self.get_form(request, row, change=row is not None)(
            request.POST, instance=row
        )
        with transaction.atomic():  # the form may lock rows
            form.is_valid()
        return form

    def _render(
        self, request: HttpRequest, form: DatabaseForm, title: str, more: dict[str, Any]
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "form": form,
            "problems": list(_form_problems(form)),
            **more,
        }
        return render(request, FORM_TEMPLATE, context)


def run_query(row: DatabaseConnection, sql: str) -> QueryResult:
    """Run a query exactly like the agent's tool."""
    began = time.perf_counter()
    try:
        tool = _fresh_tool(row)
        result = async_to_sync(tool.execute)({"sql": sql})
    except (ValueError, UnreadableSecret) as error:
        return _failed(str(error), began)
    if result.is_error:
        return _failed(translate(result.error or ""), began)
    output = json.loads(result.output)
    return QueryResult(
        columns=output["columns"],
        rows=output["rows"],
        is_truncated=output["truncated"],
        error="",
        took=figures.seconds(time.perf_counter() - began),
    )


def _fresh_tool(row: DatabaseConnection) -> QueryTool:
    """Build the tool; the values may have changed since the tables were read."""
    if row.kind != Kind.SQLITE:
        found = databases.check(row)
        if found.schema is None:
            raise ValueError(translate(found.error))
        row.schema = found.schema.as_dict()
    return databases.build_tool(row)


def _failed(error: str, began: float) -> QueryResult:
    took = figures.seconds(time.perf_counter() - began)
    return QueryResult(columns=[], rows=[], is_truncated=False, error=error, took=took)


def _description(row: DatabaseConnection) -> str:
    try:
        return databases.build_tool(row).description
    except (ValueError, UnreadableSecret) as error:
        return str(error)


def _current_state(row: DatabaseConnection) -> tuple[DatabaseConnection.State, str]:
    """Return a database's state and error; a file is looked at, because that is quick."""
    if row.kind != Kind.SQLITE:
        return State(row.state), row.last_error if row.state == State.FAILED else ""
    error = databases.check(row).error
    return (State.FAILED if error else State.READY), error


def _subject(row: DatabaseConnection) -> Any:
    return row if row.pk else "databaseconnection"


def _form_problems(form: DatabaseForm) -> Iterator[tuple[str, list[str]]]:
    """Yield problems with their field's label."""
    for name, errors in form.errors.items():
        label = str(form.fields[name].label) if name in form.fields else ""
        yield label, list(map(str, errors))


ADDRESS: list[Any] = [
    (
        gettext_lazy("Connection"),
        {
            "fields": [
                *("file", "host", "port", "database", "username", "password", "tls"),
                "ca_certificate",
            ]
        },
    ),
]
REST: list[Any] = [
    (gettext_lazy("Tables"), {"fields": ["tables"]}),
    (gettext_lazy("For the model"), {"fields": ["description"]}),
    (gettext_lazy("Limits"), {"fields": ["max_rows", "timeout"]}),
]
