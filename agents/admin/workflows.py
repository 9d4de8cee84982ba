"""Workflows are written on pages of their own; here they are switched, and given times."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.engine.plans.definition import read
from agents.models import Schedule, Workflow
from agents.workflows import schedules, starting

from .json_field import ObjectField


@admin.register(Workflow)
class WorkflowAdmin(admin.ModelAdmin):
    list_display = ["name", "description", "number", "enabled", "way"]
    list_filter = ["enabled"]
    search_fields = ["name", "description"]
    fields = ["name", "description", "enabled", "way"]
    readonly_fields = ["name", "description", "way"]

    def add_view(self, request: HttpRequest, *args: Any, **more: Any) -> HttpResponse:
        return redirect("workflows:new")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        return super().get_queryset(request).annotate(newest_number=Max("versions__number"))

    @admin.display(description=_("version"), ordering="newest_number")
    def number(self, workflow: Workflow) -> int | None:
        return workflow.newest_number

    @admin.display(description=_("its page"))
    def way(self, workflow: Workflow) -> SafeString:
        """Where it is started, edited and looked at."""
        url = reverse("workflows:workflow", args=[workflow.pk])
        return format_html('<a href="{}">{}</a>', url, _("Start or edit"))


class ScheduleForm(forms.ModelForm):
    def clean_cron(self) -> str:
        cron = " ".join(self.cleaned_data["cron"].split())
        try:
            self.instance.next_at = schedules.following(cron, timezone.now())
        except schedules.NoTime as error:
            raise forms.ValidationError(str(error)) from error
        return cron

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        workflow, given = cleaned.get("workflow"), cleaned.get("parameters")
        if workflow is not None and isinstance(given, dict) and workflow.newest is not None:
            typed = {name: starting.written(value) for name, value in given.items()}
            try:
                starting.parameters(read(workflow.newest.text), typed)
            except starting.NotStarted as error:
                self.add_error("parameters", str(error))
        self.instance.trouble = ""
        return cleaned


@admin.register(Schedule)
class ScheduleAdmin(admin.ModelAdmin):
    form = ScheduleForm
    list_display = ["workflow", "cron", "user", "enabled", "next_at", "last_run_at", "trouble"]
    list_filter = ["enabled", "workflow"]
    list_select_related = ["workflow", "user"]
    autocomplete_fields = ["user"]
    fields = ["workflow", "user", "cron", "parameters", "enabled"]
    fields += ["next_at", "last_run_at", "trouble"]
    readonly_fields = ["next_at", "last_run_at", "trouble"]
    formfield_overrides = {models.JSONField: {"form_class": ObjectField}}
