from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db import models
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.catalog import model_setups
from agents.models import Agent
from agents.models.types import LazyText
from agents.runs.engine_messages import translate
from agents.web.presentation.badges import badge
from agents.web.presentation.dates import timestamp
from agents.web.presentation.icons import icon

from .agent_editor import drafts
from .agent_editor.editor_views import EditorAdmin
from .agent_editor.layout import TABS
from .agent_form import AgentForm
from .agent_versions import VersionHistoryAdmin
from .draft_runs import DraftRunAdmin
from .json_field import JsonObjectField
from .recent_usage import ListedAgent, UsageChangeList

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
        return super().get_queryset(request).annotate(has_tools=Count("tools"))

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[UsageChangeList]:
        return UsageChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Add the drafts of agents that aren't published yet."""
        new = drafts.of_new_agents() if self.has_add_permission(request) else []
        shown = {
            "unpublished": [row for row in new if row.values],
            "discarded": [row for row in new if not row.values],
        }
        return super().changelist_view(request, shown | (extra_context or {}))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for name in model_setups.model_names(obj):
            if error := model_setups.configuration_error(name):
                messages.warning(request, translate(str(error)))

    @admin.display(description=_("name"), ordering="name")
    def named(self, agent: Agent) -> SafeString:
        """Return the name with its icon and what the agent is for."""
        picture = icon(agent.icon or "auto")
        return format_html(NAMED, agent.icon, picture, agent.name, agent.description)

    @admin.display(description=_("state"), ordering="enabled")
    def state(self, agent: ListedAgent) -> SafeString:
        """Return badges: live or off, the default agent, unpublished changes."""
        badges = [badge(_("Live"), "green") if agent.enabled else badge(_("Off"))]
        badges += [badge(_("Default"), "blue")] if agent.is_default else []
        badges += [badge(_("Draft"), "amber")] if agent.has_draft else []
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
        who = agent.newest.author.get_username() if agent.newest.author else ""
        when = timestamp(agent.newest.created_at)
        details = format_html("{} · {}", who, when) if who else when
        template = '<a href="{}">{}</a> <span class="about">{}</span>'
        return format_html(template, history_url, agent.newest.number, details)

    @admin.display(description=_("last used"))
    def last_used(self, agent: ListedAgent) -> LazyText:
        last = agent.used.get("last")
        return timestamp(last) if last else _("unused")

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
