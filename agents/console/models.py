"""Models: configured for common or any other providers, and tested before saving."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.catalog import planner_factory
from agents.catalog.agent_factory import CIRCUITS
from agents.llm import model_list
from agents.models import Agent, LanguageModel
from agents.models.types import AnyUser, LazyText
from agents.runs.engine_messages import translate

from . import listed_models, model_tester
from .json_field import JsonObjectField
from .model_admin import ConsoleAdmin
from .model_form import TESTED_FIELDS, LanguageModelForm, Provider

CONNECTION_FIELDS: list[Any] = [
    *("provider", "model", "base_url", "api_key", "forget_key"),
    *("api_version", "region", "secrets", "options"),
]
LIST_NEEDS_PROVIDER = _("Enter the provider before a slash, e.g. mistral/, to see its models.")
MODEL_STILL_USED = _("%(model)s was deleted, but these agents still use it: %(agents)s.")


@admin.register(LanguageModel)
class LanguageModelAdmin(ConsoleAdmin):
    form = LanguageModelForm
    list_display = ["label", "model", "provider", "state", "thinks_for", "enabled"]
    list_editable = ["enabled"]
    list_filter = ["provider", "enabled"]
    search_fields = ["label", "model", "base_url"]
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}
    fieldsets = [
        (None, {"fields": ["label", "enabled"]}),
        (_("Connection settings"), {"fields": CONNECTION_FIELDS}),
        (
            _("Requests"),
            {"fields": ["parameters", "context_window", "image_input", "fallbacks"]},
        ),
        (_("Pricing"), {"fields": ["input_price", "output_price"]}),
        (
            _("Limits"),
            {"fields": ["concurrency", "requests_per_minute", "tokens_per_minute"]},
        ),
        (_("Access"), {"fields": ["groups"]}),
    ]

    @admin.display(description=_("state"))
    def state(self, row: LanguageModel) -> LazyText:
        error = planner_factory.configuration_error(row.label)
        return translate(str(error)) if error else _("healthy")

    @admin.display(description=_("agents"))
    def thinks_for(self, row: LanguageModel) -> str:
        return ", ".join(agents_using(row)) or "—"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Make the label read-only, because agents refer to it."""
        return ["label"] if obj else []

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Offer to forget the key only if there is one."""
        if obj is not None and obj.api_key:
            return self.fieldsets
        names = [name for name in CONNECTION_FIELDS if name != "forget_key"]
        about, (title, _fields), *rest = self.fieldsets
        return [about, (title, {"fields": names}), *rest]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        CIRCUITS.close(f"model:{obj.label}")  # earlier failures no longer apply
        if obj.enabled and (error := planner_factory.configuration_error(obj.label)):
            messages.warning(request, translate(str(error)))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._warn_agents(request, [obj])
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        self._warn_agents(request, queryset)
        super().delete_queryset(request, queryset)

    def _warn_agents(self, request: HttpRequest, rows: Any) -> None:
        for row in rows:
            if names := agents_using(row):
                named = {"model": row.label, "agents": ", ".join(names)}
                messages.warning(request, MODEL_STILL_USED % named)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        own = planner_factory.default_model()
        default = {"model": translate(own.label), "source": translate(own.source)}
        about = {"default": default, **(extra_context or {})}
        return super().changelist_view(request, about)

    # Testing

    def get_urls(self) -> list[URLPattern]:
        test = self.admin_site.admin_view(self.test_view)
        listed = self.admin_site.admin_view(self.list_view)
        own = [
            path("models/", listed, name="agents_languagemodel_models_new"),
            path("<int:pk>/models/", listed, name="agents_languagemodel_models"),
            path("test/", test, name="agents_languagemodel_test_new"),
            path("<int:pk>/test/", test, name="agents_languagemodel_test"),
        ]
        return [*own, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **about: Any
    ) -> HttpResponse:
        row = about.get("obj")
        suffix, keys = ("", [row.pk]) if row else ("_new", [])
        for name in ("test", "models"):
            address = reverse(f"admin:agents_languagemodel_{name}{suffix}", args=keys)
            context[f"{name}_url"] = address
        return super().render_change_form(request, context, *args, **about)

    @method_decorator(require_POST)
    def test_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponseBase:
        """Test the model as described by the form; nothing is saved."""
        row, form = self._typed_form(request, request.POST, pk)
        wrong = [
            model_tester.ProbeLine(
                part=str(form[name].label), is_good=False, sentence=" ".join(errors)
            )
            for name, errors in form.errors.items()
            if name in TESTED_FIELDS
        ]
        about = {**self.admin_site.each_context(request), "opts": self.opts, "original": row}
        _record_test(request.user, form.instance, wrong)
        return model_tester.respond(request, form.instance, about, wrong)

    @method_decorator(require_POST)
    def list_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """Return the models that the server described by the form offers."""
        typed = request.POST.copy()
        # Only the provider matters here; for any other one it is in the name.
        prefix, _slash, name = typed.get("model", "").strip().partition("/")
        is_other = typed.get("provider") == Provider.OTHER
        if is_other:
            typed["model"] = f"{prefix}/{name or model_list.ANY_MODEL}"
        elif not prefix:
            typed["model"] = model_list.ANY_MODEL
        _row, form = self._typed_form(request, typed, pk)
        wrong = [
            f"{form[name].label}: {' '.join(errors)}"
            for name, errors in form.errors.items()
            if name in TESTED_FIELDS - {"parameters"} and not (is_other and name == "model")
        ]
        if is_other and "model" in form.errors:
            wrong.append(str(LIST_NEEDS_PROVIDER))
        if wrong:
            return listed_models.reply([], " ".join(wrong), is_good=False)
        return listed_models.respond(request.user, form.instance)

    def _typed_form(
        self, request: HttpRequest, typed: Any, pk: int | None
    ) -> tuple[LanguageModel | None, Any]:
        """Return the row and its form, validated as if it were saved."""
        may = self.has_add_permission if pk is None else self.has_change_permission
        if not may(request):
            raise PermissionDenied
        row = None if pk is None else get_object_or_404(LanguageModel, pk=pk)
        form = self.get_form(request, row, change=pk is not None)(typed, instance=row)
        with transaction.atomic():
            form.is_valid()  # a missing label doesn't matter yet
        return row, form


def _record_test(
    user: AnyUser, row: LanguageModel, wrong: list[model_tester.ProbeLine]
) -> None:
    """Record the test before it starts, because it sends the key to the typed URL."""
    refused = {"refused": [line.part for line in wrong]} if wrong else {}
    audit.record(
        user,
        audit.MODEL_TESTED,
        model_tester.audit_subject(row),
        **model_tester.audit_details(row),
        **refused,
    )


def agents_using(row: LanguageModel) -> list[str]:
    """Return the agents that use it, also as a fallback."""
    names = {row.label, row.model}
    used = Agent.objects.values_list("name", "model", "fallback_models")
    return [name for name, model, others in used if names & {model, *others.split()}]
