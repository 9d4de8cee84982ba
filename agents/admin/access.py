import json

from django.contrib import admin
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from agents.models import AuditEntry, ReviewScope

from .console import ConsoleAdmin
from .read_only import ReadOnlyAdmin

MOST_CHARACTERS = 200


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The log can be read, and that is all."""

    list_display = ["at", "actor_name", "action", "subject", "told"]
    list_filter = ["action"]
    search_fields = ["actor_name", "subject"]
    date_hierarchy = "at"
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    @admin.display(description=_("detail"))
    def told(self, entry: AuditEntry) -> str:
        return Truncator(json.dumps(entry.detail, ensure_ascii=False)).chars(MOST_CHARACTERS)


@admin.register(ReviewScope)
class ReviewScopeAdmin(ConsoleAdmin):
    list_display = ["user", "scope"]
    filter_horizontal = ["agents"]
    autocomplete_fields = ["user"]
    list_select_related = ["user"]

    @admin.display(description=_("agents"))
    def scope(self, row: ReviewScope) -> str:
        return ", ".join(agent.name for agent in row.agents.all())

    def get_queryset(self, request: HttpRequest):
        return super().get_queryset(request).prefetch_related("agents")
