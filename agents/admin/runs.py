from django.contrib import admin
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from agents.models import AgentStep, Approval, Run, RunEvent

from .read_only import ReadOnlyAdmin

MOST_CHARACTERS = 80


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


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyAdmin):
    list_display = [
        *("__str__", "called_with", "question", "agent_name", "verdict", "decided_by"),
        *("asked_at", "decided_at"),
    ]
    list_filter = ["verdict", "tool"]
    list_select_related = ["run", "decided_by"]
    search_fields = ["tool", "arguments", "run__query"]
    ordering = ["-pk"]

    @admin.display(description=_("arguments"))
    def called_with(self, approval: Approval) -> str:
        return Truncator(approval.arguments).chars(MOST_CHARACTERS)

    @admin.display(description=_("question"))
    def question(self, approval: Approval) -> str:
        return Truncator(approval.run.query).chars(MOST_CHARACTERS)
