"""Triggers in the console: a URL that starts an agent or a workflow, and its secret."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, reverse
from django.utils.cache import add_never_cache_headers
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.engine.plans import read_definition
from agents.models import Trigger
from agents.models.types import LazyText
from agents.web.presentation.formats.badges import badge
from agents.web.workflows import automatic, start

from .admin_classes.json_field import JsonObjectField
from .admin_classes.model_admin import ConsoleAdmin
from .automatic_starts import AutomaticStartForm

DIR = "admin/agents/trigger"
MAX_CALLS = 20
TEMPLATE_HELP = gettext_lazy(
    "Values of the request: ${payload.issue.title}. The agent sees them marked as text from "
    "outside."
)


class TriggerForm(AutomaticStartForm):
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name in ("question", "parameters"):
            try:
                automatic.check_template(cleaned.get(name) or "")
            except start.WorkflowNotStarted as error:
                self.add_error(name, str(error))
        workflow = cleaned.get("workflow")
        parameters = cleaned.get("parameters")
        if workflow is not None and workflow.newest is not None and parameters:
            known = read_definition(workflow.newest.text).plan.parameters
            if unknown := sorted(parameters.keys() - known.keys()):
                sentence = _("This workflow has no parameter %(name)s.")
                self.add_error("parameters", sentence % {"name": unknown[0]})
        return cleaned


@admin.register(Trigger)
class TriggerAdmin(ConsoleAdmin):
    form = TriggerForm
    list_display = ["name", "starts", "user", "enabled", "last_run_at", "state"]
    list_filter = ["enabled", "agent", "workflow"]
    list_select_related = ["workflow", "agent", "user"]
    search_fields = ["name"]
    fields = ["name", "agent", "question", "workflow", "parameters", "verification"]
    fields += ["into_chat", "result_channel", "enabled"]
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}
    change_list_template = f"{DIR}/change_list.html"
    change_form_template = f"{DIR}/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        rotate = self.admin_path("<int:pk>/rotate/", self.rotate_view, "agents_trigger_rotate")
        return [rotate, *super().get_urls()]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow it to the owner only, with whose permissions it runs; others can delete it."""
        is_own = obj is None or obj.user_id == request.user.pk
        return is_own and super().has_change_permission(request, obj)

    def get_form(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        form_class = super().get_form(request, *args, **options)
        return type("Form", (form_class,), {"editor": request.user})

    def formfield_for_dbfield(
        self, db_field: models.Field, request: HttpRequest, **options: Any
    ) -> forms.Field | None:
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None and db_field.name in {"question", "parameters"}:
            field.help_text = str(TEMPLATE_HELP)
            field.widget.attrs["rows"] = 4
        return field

    @admin.display(description=gettext_lazy("starts"))
    def starts(self, trigger: Trigger) -> str:
        return trigger.target

    @admin.display(description=gettext_lazy("state"))
    def state(self, trigger: Trigger) -> SafeString | LazyText | str:
        return badge(_("Error"), "red", trigger.trouble) if trigger.trouble else "—"

    def save_model(self, request: HttpRequest, obj: Trigger, form: Any, change: bool) -> None:
        if not change:
            obj.user = signed_in_user(request)
            vars(request)["new_secret"] = obj.new_secret()
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Any, *args: Any) -> HttpResponse:
        """Display the URL and the new secret, once."""
        return self._render_secret(request, obj, vars(request).pop("new_secret"))

    def rotate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Make a new secret, and display it once."""
        if request.method != "POST" or not self.has_change_permission(request):
            raise PermissionDenied
        trigger = get_object_or_404(Trigger, pk=pk)
        if not self.has_change_permission(request, trigger):
            raise PermissionDenied
        secret = trigger.new_secret()
        trigger.save()
        audit.record(request.user, audit.SECRET_ROTATED, trigger, name=trigger.name)
        return self._render_secret(request, trigger, secret)

    def _render_secret(
        self, request: HttpRequest, trigger: Trigger, secret: str
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": _("Secret"),
            "opts": self.opts,
            "trigger": trigger,
            "url": _url(request, trigger),
            "secret": secret,
            "next_url": reverse("admin:agents_trigger_change", args=[trigger.pk]),
        }
        response = render(request, f"{DIR}/secret.html", context)
        add_never_cache_headers(response)
        return response

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        if (trigger := options.get("obj")) is not None and trigger.pk:
            context["trigger_url"] = _url(request, trigger)
            context["calls"] = trigger.calls.select_related("run")[:MAX_CALLS]
        return super().render_change_form(request, context, *args, **options)


def _url(request: HttpRequest, trigger: Trigger) -> str:
    path = reverse("workflows:hook", args=[trigger.public_id])
    return request.build_absolute_uri(path)
