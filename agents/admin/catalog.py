from django.contrib import admin

from agents.models import Agent, GuardrailPattern, ToolRegistration


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
