from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.db import models
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.catalog import planner_factory
from agents.models import Agent, GuardrailPattern
from agents.models.types import LazyText
from agents.runs.engine_messages import translate

from . import figures
from .agent_editor.draft_views import DraftAdmin
from .agent_form import AgentForm
from .agent_templates import AGENT_TEMPLATES, TEMPLATES_BY_KEY
from .agent_versions import VersionHistoryAdmin
from .draft_runs import DraftRunAdmin
from .json_field import JsonObjectField
from .recent_usage import ListedAgent, UsageChangeList


@admin.register(Agent)
class AgentAdmin(DraftAdmin, DraftRunAdmin, VersionHistoryAdmin):
    form = AgentForm
    list_display = ["name", "enabled", "is_default", "description", "thinks_with"]
    list_display += ["tool_count", "last_change", "last_used", "recent_runs", "failures"]
    search_fields = ["name", "description"]
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}
    fieldsets = [
        (
            _("General"),
            {
                "fields": [
                    "name",
                    "description",
                    "icon",
                    "instructions",
                    "example_questions",
                    ("enabled", "is_default"),
                ]
            },
        ),
        (
            _("Behavior"),
            {"fields": ["mode", ("shows_plan", "max_replans"), "merge", "roles"]},
        ),
        (
            _("Model"),
            {
                "fields": [
                    "model",
                    ("allows_model_choice", "allows_parameter_choice"),
                    "fallback_models",
                    "dialect",
                ]
            },
        ),
        (
            _("Tools"),
            {
                "fields": [
                    "given",
                    "auto_execute_tools",
                    "after_untrusted",
                    "allows_sampling",
                ]
            },
        ),
        (_("Documents"), {"fields": ["collections", "retrieves_first"]}),
        (_("Handoffs"), {"fields": ["handoffs"]}),
        (_("Experts"), {"fields": ["experts", "asker_approves_questions"]}),
        (
            _("Limits"),
            {
                "fields": [
                    ("max_steps", "max_seconds"),
                    ("max_tool_calls_per_tool", "max_duplicate_tool_calls"),
                    ("max_run_tokens", "max_cost"),
                    ("max_input_tokens", "max_output_tokens"),
                ]
            },
        ),
        (
            _("Memory"),
            {
                "fields": [
                    ("max_history_turns", "max_history_tokens"),
                    ("summarizes_history", "summary_threshold"),
                    "uses_memory",
                ]
            },
        ),
        (_("Personal data"), {"fields": ["personal_data", "accepts_custom_instructions"]}),
        (_("Structured output"), {"fields": ["output_schema"]}),
        (_("Access"), {"fields": ["groups"]}),
    ]
    at_last = (_("This version"), {"fields": ["note"]})
    readonly_fields = ["guardrails"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        return super().get_queryset(request).annotate(has_tools=Count("tools"))

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[UsageChangeList]:
        return UsageChangeList

    def add_view(self, request: HttpRequest, *args: Any, **more: Any) -> HttpResponse:
        """Ask for a template first."""
        is_asked = request.method == "GET" and not {"start", IS_POPUP_VAR} & request.GET.keys()
        if not is_asked or not self.has_add_permission(request):
            return super().add_view(request, *args, **more)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("New agent"),
            "starters": AGENT_TEMPLATES,
        }
        return render(request, "admin/agents/agent/starters.html", context)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        starter = TEMPLATES_BY_KEY.get(request.GET.get("start", ""))
        return starter.initial() if starter else {}

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> list[Any]:
        """Add guardrails only for a saved agent."""
        return [*self.fieldsets, *([GUARDRAILS_FIELDSET] if obj else []), self.at_last]

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        options["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **options)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for name in planner_factory.model_names(obj):
            if error := planner_factory.configuration_error(name):
                messages.warning(request, translate(str(error)))

    @admin.display(description=_("model"), ordering="model")
    def thinks_with(self, agent: Agent) -> LazyText:
        return agent.model or _("default model")

    @admin.display(description=_("tools"), ordering="has_tools")
    def tool_count(self, agent: ListedAgent) -> SafeString | int:
        if agent.auto_execute_tools or not agent.has_tools:
            return agent.has_tools
        note = format_html('<span class="about">{}</span>', _("approval required"))
        return format_html("{} {}", agent.has_tools, note)

    @admin.display(description=_("guardrails"))
    def guardrails(self, agent: Agent) -> SafeString | LazyText:
        """List the guardrails that apply to the agent."""
        change = "admin:agents_guardrailpattern_change"
        links = (
            (reverse(change, args=[row.pk]), row.name, row.get_action_display())
            for row in GuardrailPattern.objects.for_agent(agent.pk)
        )
        found = format_html_join("", '<li><a href="{}">{}</a> · {}</li>', links)
        return format_html('<ul class="applies">{}</ul>', found) if found else _("None.")

    @admin.display(description=_("version"), ordering="version")
    def last_change(self, agent: ListedAgent) -> SafeString | str:
        """Return the version number, its author and time."""
        if agent.newest is None:
            return "—"
        page = reverse("admin:agents_agent_history", args=[agent.pk])
        who = agent.newest.author.get_username() if agent.newest.author else ""
        about = " · ".join(filter(None, [who, figures.ago(agent.newest.created_at)]))
        form = '<a href="{}">{}</a> <span class="about">{}</span>'
        return format_html(form, page, agent.newest.number, about)

    @admin.display(description=_("last used"))
    def last_used(self, agent: ListedAgent) -> LazyText:
        last = agent.used.get("last")
        return figures.ago(last) if last else _("unused")

    @admin.display(description=_("runs (7 days)"))
    def recent_runs(self, agent: ListedAgent) -> SafeString | str:
        if not (count := agent.used.get("lately")):
            return "0"
        query = urlencode({"q": f"agent:{agent.name} after:-7d"})
        return format_html('<a href="{}?{}">{}</a>', reverse("trace:list"), query, count)

    @admin.display(description=_("failed"))
    def failures(self, agent: ListedAgent) -> str:
        count, failed = (agent.used.get(name, 0) for name in ("lately", "failed"))
        return f"{failed / count:.0%}" if count else "—"


GUARDRAILS_FIELDSET = (
    _("Guardrails"),
    {
        "fields": ["guardrails"],
        "description": _("To change which agents a pattern applies to, edit the pattern."),
    },
)
