"""Agents: the list with their state and recent runs; the editor is in `agent_editor`."""

from typing import Any

from django.contrib import admin, messages
from django.db import models
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.catalog.agent_icons import automatic_icon
from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.models import Agent
from agents.models.types import LazyText
from agents.web.figures.metrics import METRICS
from agents.web.presentation.formats.badges import badge
from agents.web.presentation.formats.dates import timestamp
from agents.web.presentation.formats.icons import icon

from ..admin_classes.json_field import JsonObjectField
from ..metering.recent_usage import ListedAgent, UsageChangeList
from .agent_editor import drafts
from .agent_editor.editor_views import EditorAdmin
from .agent_editor.layout import TABS
from .agent_form import AgentForm
from .agent_versions import VersionHistoryAdmin
from .draft_runs import DraftRunAdmin

NAMED = (
    '<span class="avatar" data-icon="{}">{}</span>'
    '<span class="listed-agent">{} <small aria-hidden="true">{}</small></span>'
)


@admin.register(Agent)
class AgentAdmin(EditorAdmin, DraftRunAdmin, VersionHistoryAdmin):
    form = AgentForm
    list_display = ["named", "state", "thinks_with", "tool_count"]
    list_display += ["last_change", "last_used", "recent_runs", "failures"]
    search_fields = ["name", "description"]
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}  # for imports
    fieldsets = [(tab.label, {"fields": tab.fields}) for tab in TABS if tab.fields]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        agents = super().get_queryset(request).annotate(has_tools=Count("tools"))
        return agents.prefetch_related("tools", "handoffs")

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[UsageChangeList]:
        return UsageChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Add the drafts of agents that aren't published yet."""
        unpublished = drafts.unpublished() if self.has_add_permission(request) else []
        context = {"unpublished": unpublished, **(extra_context or {})}
        return super().changelist_view(request, context)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for name in model_setups.model_names(obj):
            if error := model_setups.configuration_error(name):
                messages.warning(request, translate(str(error)))

    @admin.display(description=_("name"), ordering="name")
    def named(self, agent: Agent) -> SafeString:
        """Return the name with its icon and what the agent is for."""
        tools = [tool.name for tool in agent.tools.all()]
        has_handoffs = bool(agent.handoffs.all())
        name = agent.icon or automatic_icon(agent, tools, has_handoffs=has_handoffs)
        return format_html(NAMED, name, icon(name), agent.name, agent.description)

    @admin.display(description=_("state"), ordering="enabled")
    def state(self, agent: ListedAgent) -> SafeString:
        """Return badges: live or off, the default agent, unpublished changes."""
        badges = [badge(_("Live"), "green") if agent.enabled else badge(_("Off"))]
        if agent.is_default:
            badges.append(badge(_("Default"), "blue"))
        if agent.has_draft:
            badges.append(badge(_("Draft"), "amber"))
        return format_html_join(" ", "{}", ((state_badge,) for state_badge in badges))

    @admin.display(description=_("model"), ordering="model")
    def thinks_with(self, agent: Agent) -> LazyText:
        return agent.model or _("default model")

    @admin.display(description=_("tools"), ordering="has_tools")
    def tool_count(self, agent: ListedAgent) -> SafeString | int:
        if agent.auto_execute_tools or not agent.has_tools:
            return agent.has_tools
        return format_html("{} {}", agent.has_tools, badge(_("Approval required")))

    @admin.display(description=_("version"), ordering="version")
    def last_change(self, agent: ListedAgent) -> SafeString | str:
        """Return the version number, its author and time."""
        if agent.newest is None:
            return "—"
        history_url = reverse("admin:agents_agent_history", args=[agent.pk])
        details = timestamp(agent.newest.created_at)
        if agent.newest.author:
            details = format_html("{} · {}", agent.newest.author.get_username(), details)
        template = '<a href="{}">{}</a> <span class="about">{}</span>'
        return format_html(template, history_url, agent.newest.number, details)

    @admin.display(description=_("last used"))
    def last_used(self, agent: ListedAgent) -> LazyText:
        return timestamp(agent.last_run) if agent.last_run else _("unused")

    @admin.display(description=_("runs (7 days)"))
    def recent_runs(self, agent: ListedAgent) -> SafeString | str:
        count = METRICS["runs"].write(agent.totals)
        if not (agent.totals["runs"] and agent.runs_url):
            return count
        return format_html('<a href="{}">{}</a>', agent.runs_url, count)

    @admin.display(description=_("failed"))
    def failures(self, agent: ListedAgent) -> str:
        return METRICS["errors"].write(agent.totals)
