"""Alert rules: what is announced, and where."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents.insight.alerts.models import AlertChannel, AlertRule
from agents.models import ReviewScope

from .scoped_admin import ScopedAdmin

NO_CHANNELS = _("Add a channel first: users, email addresses or a webhook.")


@admin.register(AlertRule)
class AlertRuleAdmin(ScopedAdmin):
    list_display = ["name", "event", "targets", "quiet_minutes", "enabled"]
    list_filter = ["event", "enabled"]
    search_fields = ["name"]
    fields = ["name", "event", "agents", "channels", "quiet_minutes", "enabled"]
    change_list_template = "admin/alerts/alertrule/change_list.html"

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        options["widget"] = forms.CheckboxSelectMultiple
        if db_field.name == "agents":
            agents = ReviewScope.objects.agents_of(request.user)
            if agents is not None:  # a scoped reviewer chooses among their agents
                options |= {"queryset": agents, "required": True, "help_text": ""}
        if db_field.name == "channels":
            channels = AlertChannel.objects.of_installation()
            options["queryset"] = channels
            if not channels.exists():
                options["help_text"] = NO_CHANNELS
        return super().formfield_for_manytomany(db_field, request, **options)

    @admin.display(description=_("channels"))
    def targets(self, rule: AlertRule) -> str:
        return ", ".join(str(channel) for channel in rule.channels.all())

    def get_queryset(self, request: HttpRequest) -> Any:
        return AlertRule.objects.for_user(request.user).prefetch_related("channels")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        context = {"has_channels": AlertChannel.objects.of_installation().exists()}
        return super().changelist_view(request, context | (extra_context or {}))
