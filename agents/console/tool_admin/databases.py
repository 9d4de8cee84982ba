"""Databases: connections, what agents can read of them, and queries to try."""

import json
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.access import audit
from agents.catalog.tools import databases
from agents.db.sentences import translate
from agents.models import DatabaseConnection
from agents.models.secret import UnreadableSecret
from agents.models.types import LazyText
from agents.web.presentation.formats import formatting
from agents.web.presentation.formats.badges import badge
from agents.web.presentation.formats.dates import timestamp

from ..admin_classes.pages import agent_links, form_problems, posted_form, render_page
from ..admin_classes.switchable import SwitchableAdmin
from . import circuit_breakers
from .database_form import DatabaseForm, TablesField

Kind = DatabaseConnection.Kind
State = DatabaseConnection.State
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
class DatabaseConnectionAdmin(SwitchableAdmin):
    form = DatabaseForm
    can_rename_deleted = False  # the name is part of its tools' names
    list_display = ["name", "kind", "condition", "enabled", "table_count", "used_by"]
    list_display += ["tool", "last_checked"]
    list_editable = ["enabled"]
    list_filter = ["kind", "state", "enabled"]
    search_fields = ["name", "host", "database", "description"]
    actions = ["test_selected", *SwitchableAdmin.actions]
    formfield_overrides = {models.JSONField: {"form_class": TablesField}}
    readonly_fields = ["tool", "used_by"]

    # Columns

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def condition(self, row: DatabaseConnection) -> SafeString:
        state, error = _current_state(row)
        state_badge = badge(state.label, TONES[state])
        if not error:
            return state_badge
        return format_html('{}<div class="help">{}</div>', state_badge, translate(error))

    @admin.display(description=gettext_lazy("tables"))
    def table_count(self, row: DatabaseConnection) -> str:
        schema = databases.check(row).schema if row.kind == Kind.SQLITE else None
        total = len(schema.tables if schema else (row.schema or {}).get("tables", ()))
        if row.tables is None:
            return str(total) if total else "—"
        return _("%(count)s of %(total)s") % {"count": len(row.tables), "total": total or "?"}

    @admin.display(description=gettext_lazy("used by agents"))
    def used_by(self, row: DatabaseConnection) -> SafeString | LazyText:
        agents = {agent.pk: agent for tool in row.tools.all() for agent in tool.agents.all()}
        return format_html("<span>{}</span>", agent_links(agents.values())) if agents else "—"

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
            return [(None, {"fields": ["name", "tool", "enabled"]}), *USE_FIELDSETS]
        return [(None, {"fields": first}), ADDRESS_FIELDSET, *USE_FIELDSETS]

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
        check = databases.check(row)
        databases.save_check(row.pk, check)
        if check.error:
            messages.warning(request, f"{row.name}: {translate(check.error)}")

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        if row:
            row.state, row.last_error = _current_state(row)
            try:
                description = databases.build_tool(row).description
            except (ValueError, UnreadableSecret) as error:
                description = str(error)
            context["powers"] = row.powers
            context["grant"] = GRANTS.get(Kind(row.kind))
            context["model_sees"] = description
        return super().render_change_form(request, context, *args, **options)

    # Actions

    @admin.action(description=gettext_lazy("Test connection"), permissions=["change"])
    def test_selected(self, request: HttpRequest, rows: Any) -> None:
        for row in rows[:20]:
            self._test(request, row)

    def changed_message(self, count: int, values: dict[str, bool]) -> str:
        sentence = ngettext(
            "%(count)d database changed.", "%(count)d databases changed.", count
        )
        return sentence % {"count": count}

    def _test(self, request: HttpRequest, row: DatabaseConnection) -> None:
        check = databases.check(row)
        databases.save_check(row.pk, check)
        audit.record(request.user, audit.SERVER_TESTED, row, name=row.name)
        if check.error:
            messages.error(request, f"{row.name}: {translate(check.error)}")
            return
        count = len(check.schema.tables) if check.schema else 0
        sentence = _("%(name)s: connected to %(version)s, %(count)d tables.")
        values = {"name": row.name, "version": check.version, "count": count}
        messages.success(request, sentence % values)

    # Pages

    def get_urls(self) -> list[URLPattern]:
        prefix = "agents_databaseconnection"
        return [
            self.admin_path("try/", self.try_view, f"{prefix}_try"),
            self.admin_path("<int:pk>/try/", self.try_view, f"{prefix}_try"),
            self.admin_path("query/", self.query_view, f"{prefix}_query"),
            self.admin_path("<int:pk>/query/", self.query_view, f"{prefix}_query"),
            self.admin_path("<int:pk>/test/", self.test_view, f"{prefix}_test"),
            *super().get_urls(),
        ]

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
        form = posted_form(self, request, pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        context: dict[str, Any] = {"title": _("Test connection")}
        if form.is_valid():
            row = form.unsaved_row()
            audit.record(request.user, audit.SERVER_TESTED, _audit_subject(row), name=row.name)
            check = databases.check(row)
            if check.schema:
                form.fields["tables"].widget.schema = check.schema
            context["found"] = check
            context["error"] = translate(check.error)
            context["grant"] = GRANTS.get(Kind(row.kind))
        return self._render_tried(request, form, context)

    def query_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """Run a query with the values in the form, through both layers like an agent's."""
        form = posted_form(self, request, pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        sql = request.POST.get("sql", "").strip()
        result = None
        if form.is_valid():
            row = form.unsaved_row()
            details = {"name": row.tool_name, "arguments": ["sql"]}
            audit.record(request.user, audit.TOOL_RUN, _audit_subject(row), **details)
            result = run_query(row, sql)
        context = {"title": _("Test query"), "result": result, "sql": sql}
        return self._render_tried(request, form, context)

    def _render_tried(
        self, request: HttpRequest, form: DatabaseForm, context: dict[str, Any]
    ) -> HttpResponse:
        context |= {"opts": self.opts, "form": form, "problems": form_problems(form)}
        return render_page(request, FORM_TEMPLATE, context)


def run_query(row: DatabaseConnection, sql: str) -> QueryResult:
    """Run a query exactly like the agent's tool."""
    began = time.perf_counter()
    try:
        if row.kind != Kind.SQLITE:  # the values may have changed since the tables were read
            check = databases.check(row)
            if check.schema is None:
                return _failed(translate(check.error), began)
            row.schema = check.schema.as_dict()
        tool = databases.build_tool(row)
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
        took=formatting.seconds(time.perf_counter() - began),
    )


def _failed(error: str, began: float) -> QueryResult:
    took = formatting.seconds(time.perf_counter() - began)
    return QueryResult(columns=[], rows=[], is_truncated=False, error=error, took=took)


def _current_state(row: DatabaseConnection) -> tuple[DatabaseConnection.State, str]:
    """Return a database's state and error; a file is looked at, because that is quick."""
    if row.kind != Kind.SQLITE:
        return State(row.state), row.last_error if row.state == State.FAILED else ""
    error = databases.check(row).error
    return (State.FAILED if error else State.READY), error


def _audit_subject(row: DatabaseConnection) -> Any:
    return row if row.pk else "databaseconnection"


ADDRESS_FIELDSET: Any = (
    gettext_lazy("Connection"),
    {
        "fields": [
            "file",
            "host",
            "port",
            "database",
            "username",
            "password",
            "tls",
            "ca_certificate",
        ]
    },
)
USE_FIELDSETS: list[Any] = [
    (gettext_lazy("Tables"), {"fields": ["tables"]}),
    (gettext_lazy("For the model"), {"fields": ["description"]}),
    (gettext_lazy("Limits"), {"fields": ["max_rows", "timeout"]}),
]
