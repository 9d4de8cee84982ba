"""What may be asked and answered."""

from django.contrib import admin

from agents.models import GuardrailPattern

from .console import ConsoleAdmin


@admin.register(GuardrailPattern)
class GuardrailPatternAdmin(ConsoleAdmin):
    list_display = ["name", "pattern", "stage", "action", "enabled"]
    list_editable = ["enabled"]
    list_filter = ["stage", "action", "enabled"]
    search_fields = ["name", "pattern"]
