"""Tools: settings of existing ones, and creation of HTTP tools."""

from collections import Counter
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.catalog import mcp_servers
from agents.db.sentences import translate
from agents.models import DatabaseConnection, McpServer, ToolRegistration
from agents.models.types import LazyText
from agents.tools.mcp.definition import escape_invisible
from agents.tools.search import SearchTool
from agents.tools.web import ReadPageTool, WebSearchTool
from agents.web.figures.metrics import METRICS
from agents.web.presentation.formats.dates import timestamp

from ..admin_classes.json_field import JsonObjectField, format_json
from ..admin_classes.pages import agent_links
from ..admin_classes.switchable import SwitchableAdmin
from ..metering import budgets, usage
from . import (
    circuit_breakers,
    openapi_import,
    remote_agents,
    schema_summary,
    tool_settings,
    tool_tester,
)
from .remote_agents import PRIVATE_ADDRESS
from .tool_form import HttpToolForm, ToolForm, WebSearchForm, missing_fallback
from .tool_settings import (
    effect,
    input_schema,
    is_unconfigured,
    load_http_tool,
    load_tool,
    requires_approval,
)

Source = ToolRegistration.Source
ApprovalMode = ToolRegistration.ApprovalMode


class _SwitchForm(forms.BaseModelForm):
    """A row of the list, whose checkbox names its tool."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label = _("Enable %(name)s") % {"name": self.instance.name}
        self.fields["enabled"].widget.attrs["aria-label"] = label


@admin.register(ToolRegistration)
class ToolRegistrationAdmin(SwitchableAdmin):
    form = ToolForm
    list_display = ["name", "comes_from", "condition", "enabled", "what_it_does", "asks_first"]
    list_display += ["agent_count", "calls", "median", "latest"]
    list_editable = ["enabled"]
    list_filter = ["source", "server", "enabled", "approval"]
    ordering = ["source", "name"]
    list_select_related = ["server", "connection"]
    search_fields = ["name", "description", "endpoint"]
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}

    @admin.display(description=_("provided by"), ordering="source")
    def comes_from(self, row: ToolRegistration) -> str:
        if row.server is not None:
            return _("MCP server %(name)s") % {"name": row.server.name}
        if row.connection is not None:
            return _("Database %(name)s") % {"name": row.connection.name}
        return row.get_source_display()

    @admin.display(description=_("approval"))
    def asks_first(self, row: ToolRegistration) -> LazyText:
        return ApprovalMode.ALWAYS.label if requires_approval(row) else ApprovalMode.NEVER.label

    @admin.display(description=_("side effects"))
    def what_it_does(self, row: ToolRegistration) -> LazyText:
        side_effect = effect(row)
        return side_effect.label if side_effect else "—"

    @admin.display(description=_("state"))
    def condition(self, row: ToolRegistration) -> SafeString:
        """Return the state with a dot, so that a list shows what needs attention."""
        state = self.state(row)
        tone = "green" if str(state) == str(circuit_breakers.HEALTHY) else "red"
        if not row.enabled:
            tone = ""
            state = _("disabled")
        elif is_unconfigured(row):
            tone = ""
        template = '<span class="tool-state"><span class="dot" data-tone="{}"></span>{}</span>'
        return format_html(template, tone, state)

    @admin.display(description=_("agents"), ordering="agent_total")
    def agent_count(self, row: Any) -> int:
        return int(row.agent_total)

    @admin.display(description=_("state"))
    def state(self, row: ToolRegistration) -> LazyText:
        if is_unconfigured(row):
            return _("not configured")
        if row.is_gone:
            return _("removed from server")
        if row.pending:
            return _("blocked (definition changed)")
        if row.server and not row.server.enabled:
            return _("server disabled")
        if row.connection and not row.connection.enabled:
            return _("database disabled")
        if row.connection and row.connection.state == DatabaseConnection.State.FAILED:
            return _("database failing")
        if row.server and row.server.state == McpServer.State.FAILED:
            return _("server failing")
        if reason := tool_settings.unavailable_reason(row):
            return translate(reason)
        return circuit_breakers.tool_state(row.name) if load_tool(row) else _("unavailable")

    @admin.display(description=_("last used"))
    def last_used(self, row: ToolRegistration) -> LazyText:
        used = usage.usage_cache().get(row.name)
        return timestamp(used.last) if used and used.last else _("not in the last 7 days")

    @admin.display(description=_("last used"))
    def latest(self, row: ToolRegistration) -> LazyText:
        used = usage.usage_cache().get(row.name)
        return timestamp(used.last) if used and used.last else "—"

    @admin.display(description=_("calls (7 days)"))
    def calls(self, row: ToolRegistration) -> str:
        used = usage.usage_cache().get(row.name)
        if used is None:
            return "—"
        count = METRICS["tool_calls"].write(used.totals)
        if not used.totals["tool_errors"]:
            return count
        failed = _("%(rate)s failed") % {"rate": METRICS["tool_errors"].write(used.totals)}
        return _("%(name)s (%(detail)s)") % {"name": count, "detail": failed}

    @admin.display(description=_("median time"))
    def median(self, row: ToolRegistration) -> str:
        used = usage.usage_cache().get(row.name)
        return METRICS["calls_p50"].write(used.totals) if used else "—"

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is None:
            return [
                (None, {"fields": BASIC_FIELDS, "description": NEW_TOOL_HELP}),
                *HTTP_FIELDSETS,
                USE_FIELDSET,
                CACHE_FIELDSET,
            ]
        basics = (None, {"fields": ["source", *BASIC_FIELDS]})
        cache = [CACHE_FIELDSET] if tool_settings.can_be_cached(obj) else []
        if obj.source == Source.HTTP:
            use = [ARGUMENTS_FIELDSET, USE_FIELDSET, *cache, USAGE_FIELDSET]
            return [basics, *HTTP_FIELDSETS, *use]
        if obj.connection is not None:
            use = [DATABASE_USE_FIELDSET, *cache, USAGE_FIELDSET]
            return [(None, {"fields": DATABASE_FIELDS}), *use]
        search = [SEARCH_FIELDSET] if obj.name == SearchTool.name else []
        if obj.source == Source.OWN and obj.name in WEB_FIELDSETS:
            search = [WEB_FIELDSETS[obj.name]]
        server = [SERVER_FIELDSET] if obj.source == Source.MCP else []
        use = [ARGUMENTS_FIELDSET, USE_FIELDSET, *cache]
        return [basics, *search, *use, *server, USAGE_FIELDSET]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fixed = ["source", "server", "database_page", "accepted_definition", "held_back"]
        fixed += ["takes", "model_sees"]
        fixed += ["state", "last_used", "calls", "median", "used_by"]
        return fixed if obj is None or obj.source == Source.HTTP else ["name", *fixed]

    @admin.display(description=_("arguments"))
    def takes(self, row: ToolRegistration) -> SafeString | str:
        """Return the schema as text, and as JSON."""
        schema = input_schema(row)
        if schema is None:
            return "—"
        context = {
            "parameters": schema_summary.parse_parameters(schema),
            "schema": escape_invisible(format_json(schema)),
        }
        return render_to_string("admin/agents/toolregistration/_parameters.html", context)

    @admin.display(description=_("database"))
    def database_page(self, row: ToolRegistration) -> SafeString | str:
        if row.connection is None:
            return "—"
        url = reverse("admin:agents_databaseconnection_change", args=[row.connection_id])
        template = '<a href="{}">{}</a><div class="help">{}</div>'
        return format_html(template, url, row.connection.name, DATABASE_HELP)

    @admin.display(description=_("what the model sees"))
    def model_sees(self, row: ToolRegistration) -> SafeString | str:
        tool = load_tool(row)
        if tool is None:
            return "—"
        return format_html('<pre class="definition">{}</pre>', tool.description)

    @admin.display(description=_("used by agents"))
    def used_by(self, row: ToolRegistration) -> SafeString | LazyText:
        return agent_links(row.agents.order_by("name")) or _("Not used by any agent.")

    @admin.display(description=_("accepted definition"))
    def accepted_definition(self, row: ToolRegistration) -> SafeString:
        return format_html(
            '<pre class="definition">{}</pre>', escape_invisible(format_json(row.definition))
        )

    @admin.display(description=_("pending change"))
    def held_back(self, row: ToolRegistration) -> SafeString | str:
        if not row.pending:
            return "—"
        url = reverse("admin:agents_mcpserver_change", args=[row.server_id])
        return format_html('<a href="{}#tool-{}">{}</a>', url, row.pk, PENDING_CHANGE)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        if obj is None or obj.source == Source.HTTP:
            options = {"form": HttpToolForm, **options}
        elif self._is_web_search(obj):
            options = {"form": WebSearchForm, **options}
        return super().get_form(request, obj, change, **options)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == "collections":
            options |= {"widget": forms.CheckboxSelectMultiple}
        return super().formfield_for_manytomany(db_field, request, **options)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(agent_total=Count("agents"))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Add the sources as tabs, with how many tools each has."""
        counts = Counter(ToolRegistration.objects.values_list("source", flat=True))
        chosen = request.GET.get("source__exact", "")
        tabs = [("", _("All"), sum(counts.values()), not chosen)]
        tabs += [(s.value, TABS[s], counts[s.value], chosen == s.value) for s in TABS]
        return super().changelist_view(request, {"sources": tabs} | (extra_context or {}))

    def changed_message(self, count: int, values: dict[str, bool]) -> str:
        sentence = ngettext("%(count)d tool changed.", "%(count)d tools changed.", count)
        return sentence % {"count": count}

    def get_changelist_form(self, request: HttpRequest, **options: Any) -> Any:
        form_class = super().get_changelist_form(request, **options)
        return type("SwitchForm", (_SwitchForm, form_class), {})

    def get_urls(self) -> list[URLPattern]:
        def page_path(route: str, view: Any, name: str) -> URLPattern:
            return self.admin_path(route, view, f"agents_toolregistration_{name}", console=self)

        return [
            page_path("<int:pk>/run/", tool_tester.page, "run"),
            page_path("try/", tool_tester.try_page, "try"),
            page_path("<int:pk>/try/", tool_tester.try_page, "try"),
            page_path("openapi/", openapi_import.page, "openapi"),
            page_path("remote-agent/", remote_agents.page, "remote_agent"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        is_http = row is None or row.source == Source.HTTP
        is_search = row is not None and self._is_web_search(row)
        context["is_web_search"] = is_search and self.has_change_permission(request, row)
        context["is_http"] = is_http and self.has_change_permission(request, row)
        context["may_run"] = row is not None and tool_tester.may_run(request.user, row)
        context |= budgets.applying_to(request, tool=row)
        return super().render_change_form(request, context, *args, **options)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Built-in tools return at the next start; a database's tool goes with it."""
        is_own = obj is not None and obj.source in (Source.OWN, Source.DATABASE)
        return super().has_delete_permission(request, obj) and not is_own

    @staticmethod
    def _is_web_search(row: ToolRegistration) -> bool:
        return row.source == Source.OWN and row.name == WebSearchTool.name

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        circuit_breakers.reset_tool(obj.name)
        if warning := missing_fallback(obj):
            messages.warning(request, warning)
        is_http = obj.source == Source.HTTP and load_http_tool(obj)
        is_usable = is_http or (self._is_web_search(obj) and obj.endpoint)
        if is_usable and (exemption := mcp_servers.egress().required_exemption(obj.endpoint)):
            messages.warning(request, PRIVATE_ADDRESS % {"name": obj.name, "place": exemption})


NEW_TOOL_HELP = _(
    "Create a tool from an HTTP endpoint. Built-in tools and tools from MCP servers "
    "are added automatically."
)
PENDING_CHANGE = _(
    "The server changed this tool's definition. The tool is blocked "
    "until you accept the change."
)
BASIC_FIELDS = ["name", "description", "enabled"]
USE_FIELDSET = (
    _("Calls & access"),
    {
        "fields": [
            "approval",
            "always_allow",
            "effect",
            "timeout",
            "max_retries",
            "fallback",
            "groups",
        ]
    },
)
CACHE_FIELDSET = (
    _("Result cache"),
    {"fields": [("result_cache", "result_cache_seconds")]},
)
SEARCH_FIELDSET = (
    _("Search"),
    {
        "fields": [
            "collections",
            "top_k",
            "min_score",
            "min_certainty",
            "rerank_model",
            "rerank_count",
            "rerank_seconds",
        ]
    },
)
WEB_FIELDSETS = {
    WebSearchTool.name: (
        _("Search service"),
        {"fields": ["search_service", "endpoint", "api_key", "top_k"]},
    ),
    ReadPageTool.name: (_("Pages"), {"fields": ["any_page"]}),
}
DATABASE_FIELDS = ["source", "name", "database_page", "enabled", "model_sees"]
DATABASE_USE_FIELDSET = (
    _("Calls & access"),
    {"fields": ["approval", "always_allow", "max_retries", "fallback", "groups"]},
)
DATABASE_HELP = _("Address, tables, row limit, timeout and description are set there.")
TABS = {
    Source.OWN: _("Built-in"),
    Source.DATABASE: _("Databases"),
    Source.HTTP: _("HTTP"),
    Source.MCP: _("MCP servers"),
}
ARGUMENTS_FIELDSET = (_("Arguments"), {"fields": ["takes"]})
USAGE_FIELDSET = (
    _("Recent usage"),
    {
        "fields": ["state", "last_used", "calls", "median", "used_by"],
        "description": _("Based on runs started in the last 7 days (up to the latest 20,000)."),
    },
)
HTTP_FIELDSETS = [
    (_("Endpoint"), {"fields": ["endpoint", "method", "headers"]}),
    (_("Definition"), {"fields": ["definition"]}),
]
SERVER_FIELDSET = (_("MCP server"), {"fields": ["server", "accepted_definition", "held_back"]})
