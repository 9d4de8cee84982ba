"""Which runs reviewers can read, and which groups have no memory, in the console."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents.models import MemoryExclusion, ReviewScope

from .admin_classes.model_admin import ConsoleAdmin


@admin.register(ReviewScope)
class ReviewScopeAdmin(ConsoleAdmin):
    list_display = ["user", "scope"]
    filter_horizontal = ["agents"]
    autocomplete_fields = ["user"]
    list_select_related = ["user"]

    @admin.display(description=_("agents"))
    def scope(self, row: ReviewScope) -> str:
        return ", ".join(agent.name for agent in row.agents.all())

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReviewScope]:
        return super().get_queryset(request).prefetch_related("agents")


@admin.register(MemoryExclusion)
class MemoryExclusionAdmin(ConsoleAdmin):
    """Groups whose members have no long-term memory."""

    list_display = ["group"]
    list_select_related = ["group"]
