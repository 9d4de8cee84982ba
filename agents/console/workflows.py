"""Workflows in the console: enable and schedule them.

They are written on pages of their own.
"""

from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext

from agents.access.requests import signed_in_user
from agents.db.sanitize import parse_id
from agents.engine.plans import read_definition
from agents.models import Schedule, Workflow
from agents.models.types import LazyText
from agents.web.workflows import acceptance, schedules, start

from .admin_classes.json_field import JsonObjectField
from .admin_classes.model_admin import ConsoleAdmin
from .automatic_starts import AutomaticStartForm

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class NewestNumber(TypedDict):
    newest_number: int | None


NumberedWorkflow: TypeAlias = "WithAnnotations[Workflow, NewestNumber]"


@admin.register(Workflow)
class WorkflowAdmin(ConsoleAdmin):
    list_display = ["name", "description", "number", "enabled", "way"]
    list_filter = ["enabled"]
    search_fields = ["name", "description"]
    fields = ["name", "description", "enabled", "way"]
    readonly_fields = ["name", "description", "way"]

    def add_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        return redirect("workflows:new")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        return super().get_queryset(request).annotate(newest_number=Max("versions__number"))

    @admin.display(description=_("version"), ordering="newest_number")
    def number(self, workflow: NumberedWorkflow) -> int | None:
        return workflow.newest_number

    @admin.display(description=_("workflow page"))
    def way(self, workflow: Workflow) -> SafeString:
        """Link to its page."""
        url = reverse("workflows:workflow", args=[workflow.pk])
        return format_html('<a href="{}">{}</a>', url, _("Start or edit"))


SUPERUSER_ONLY = _("Only a superuser can make a workflow run as another user.")


class ScheduleForm(AutomaticStartForm):
    def clean_user(self) -> Any:
        """Restrict the owner, because a scheduled run has that user's permissions."""
        user = self.cleaned_data["user"]
        is_new = user.pk != self.instance.user_id
        if is_new and self.editor and not self.editor.is_superuser and user != self.editor:
            raise forms.ValidationError(SUPERUSER_ONLY)
        return user

    def clean_cron(self) -> str:
        cron = " ".join(self.cleaned_data["cron"].split())
        try:
            self.instance.next_at = schedules.next_time(cron, timezone.now())
        except schedules.InvalidCron as error:
            raise forms.ValidationError(str(error)) from error
        return cron

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        workflow = cleaned.get("workflow")
        parameters = cleaned.get("parameters")
        if (
            workflow is not None
            and isinstance(parameters, dict)
            and workflow.newest is not None
        ):
            try:
                start.resolve_parameters(
                    read_definition(workflow.newest.text), start.format_parameters(parameters)
                )
            except start.WorkflowNotStarted as error:
                self.add_error("parameters", str(error))
        return cleaned


@admin.register(Schedule)
class ScheduleAdmin(ConsoleAdmin):
    form = ScheduleForm
    list_display = ["starts", "cron", "user", "enabled", "next_at", "last_run_at", "state"]
    list_filter = ["enabled", "workflow", "agent"]
    list_select_related = ["workflow", "agent", "user", "result_channel"]
    autocomplete_fields = ["user"]
    fields = ["workflow", "parameters", "agent", "question", "user", "cron", "overlap"]
    fields += ["into_chat", "result_channel", "enabled", "next_at", "last_run_at", "state"]
    readonly_fields = ["next_at", "last_run_at", "state"]
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}

    def get_form(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        form_class = super().get_form(request, *args, **options)
        return type("Form", (form_class,), {"editor": request.user})

    @admin.display(description=_("starts"), ordering="workflow__name")
    def starts(self, schedule: Schedule) -> str:
        return schedule.target

    @admin.display(description=_("state"))
    def state(self, schedule: Schedule) -> SafeString | LazyText:
        """Return whether it is active, and if not, who has to do what."""
        if schedule.pk is None:
            return "—"
        held_reason = acceptance.why_held(schedule, acceptance.newest_version(schedule))
        return held_reason or schedule.trouble or _("Accepted by owner")

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if acceptance.update_acceptance(obj, signed_in_user(request)):
            return
        if obj.user_id != request.user.pk:
            newest = acceptance.newest_version(obj)
            messages.warning(request, acceptance.why_held(obj, newest))
            return
        url = reverse("workflows:schedule", args=[obj.pk])
        sentence = _(
            "This workflow has a new version. The schedule is paused until you accept it."
        )
        messages.warning(
            request,
            format_html(
                '{} <a href="{}">{}</a>', sentence, url, pgettext("schedule", "Review")
            ),
        )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Prefill the user, and the parameters of the workflow in the URL.

        A parameter that requires a value is null.
        """
        initial = super().get_changeform_initial_data(request)
        workflows = Workflow.objects.for_user(request.user)
        workflow = workflows.filter(pk=parse_id(request.GET.get("workflow")) or 0).first()
        version = workflow.newest if workflow else None
        parameters = dict(read_definition(version.text).plan.parameters) if version else {}
        return {"user": request.user.pk, "parameters": parameters, **initial}

    def formfield_for_dbfield(
        self, db_field: models.Field, request: HttpRequest, **options: Any
    ) -> forms.Field | None:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None and db_field.name in {"question", "parameters"}:
            field.widget.attrs["rows"] = 4
        if field is not None and db_field.name == "cron":
            zone = _("Time zone: %(zone)s.") % {"zone": timezone.get_current_timezone_name()}
            field.help_text = format_html("{} {}", field.help_text, zone)
        return field
