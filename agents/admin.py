from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents.models import (
    Agent,
    AgentStep,
    Chunk,
    Document,
    GuardrailPattern,
    Run,
    RunEvent,
    ToolRegistration,
)

admin.site.site_header = admin.site.site_title = "Ashiato"
admin.site.index_title = _("Administration")


class ReadOnlyAdmin(admin.ModelAdmin):
    """What happened can be looked at and deleted, not rewritten."""

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin):
    list_display = [
        "name",
        "description",
        "model",
        "dialect",
        "max_steps",
        "is_default",
        "enabled",
    ]
    list_filter = ["enabled", "dialect"]
    search_fields = ["name", "description"]
    filter_horizontal = ["tools"]


@admin.register(ToolRegistration)
class ToolRegistrationAdmin(admin.ModelAdmin):
    list_display = ["name", "enabled", "timeout"]
    list_editable = ["enabled"]
    search_fields = ["name", "description"]


@admin.register(GuardrailPattern)
class GuardrailPatternAdmin(admin.ModelAdmin):
    list_display = ["name", "pattern", "stage", "action", "enabled"]
    list_editable = ["enabled"]
    list_filter = ["stage", "action", "enabled"]
    search_fields = ["name", "pattern"]


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = [
        *("id", "query", "user", "agent_name", "model", "status", "stopped_reason"),
        *("turns", "tool_calls", "started_at"),
    ]
    list_filter = ["status", "stopped_reason", "agent_name"]
    search_fields = ["query", "answer"]
    date_hierarchy = "started_at"
    list_select_related = ["user"]


@admin.register(AgentStep)
class AgentStepAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "run", "kind", "status", "action", "started_at", "ended_at"]
    list_filter = ["kind", "status", "action"]
    search_fields = ["action", "thought", "observation"]
    list_select_related = ["run"]
    ordering = ["-pk"]


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    list_display = ["run_id", "seq", "type", "agent", "time"]
    list_filter = ["type"]
    ordering = ["-pk"]
    show_full_result_count = False


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = ["title", "source", "language", "added_at"]
    list_filter = ["language"]
    search_fields = ["title", "source"]


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "heading"]
    search_fields = ["heading", "text"]
    list_select_related = ["document"]
