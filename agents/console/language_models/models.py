"""Models: what they cost and can do, who uses them, and whether they work."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, reverse
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.catalog.agent_factory import CIRCUITS
from agents.catalog.language_models import model_setups
from agents.db.sanitize import parse_id
from agents.db.sentences import translate
from agents.models import Agent, LanguageModel, ModelConnection
from agents.web.presentation.formats.formatting import token_size

from ..admin_classes.json_field import JsonObjectField
from ..admin_classes.pages import posted_form
from ..admin_classes.switchable import SwitchableAdmin
from ..metering import budgets
from . import (
    default_uses,
    defaults,
    listed_models,
    model_facts,
    model_form,
    model_page,
    model_state,
    model_tester,
    model_usage,
)
from .model_form import TESTED_FIELDS, LanguageModelForm
from .model_providers import card_of

ABILITY_FIELDS = [("can_tools", "image_input", "can_audio"), ("can_schema", "can_reasoning")]
MODEL_STILL_USED = _("%(model)s was deleted, but these agents still use it: %(agents)s.")
FROM_PRICE_LIST = _(
    "From the price list. Leave a field empty to use its value, or enter another one."
)
TEMPLATES = "admin/agents/languagemodel"


class ModelChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        model_page.attach_figures(request.user, self.result_list)


@admin.register(LanguageModel)
class LanguageModelAdmin(SwitchableAdmin):
    form = LanguageModelForm
    list_display = ["name", "state", "price", "window", "able_to", "last_week", "used_by"]
    list_display_links = None
    list_filter = ["connection", "enabled"]
    search_fields = ["label", "model", "connection__name"]
    list_select_related = ["connection"]
    formfield_overrides = {models.JSONField: {"form_class": JsonObjectField}}

    # The list

    @admin.display(description=_("model"), ordering="label")
    def name(self, row: LanguageModel) -> SafeString:
        return self._cell("name", row)

    @admin.display(description=_("state"))
    def state(self, row: LanguageModel) -> SafeString:
        return self._cell("state", row)

    @admin.display(description=_("price per 1M tokens"))
    def price(self, row: LanguageModel) -> str:
        return model_facts.price_text(row)

    @admin.display(description=_("context window"))
    def window(self, row: LanguageModel) -> str:
        size = model_facts.window_of(row)
        return token_size(size) if size else "—"

    @admin.display(description=_("abilities"))
    def able_to(self, row: LanguageModel) -> SafeString:
        return self._cell("abilities", row)

    @admin.display(description=_("last 7 days"))
    def last_week(self, row: LanguageModel) -> SafeString:
        return self._cell("usage", row)

    @admin.display(description=_("used by"))
    def used_by(self, row: LanguageModel) -> SafeString:
        return self._cell("used_by", row)

    def _cell(self, column: str, row: LanguageModel) -> SafeString:
        return render_to_string(f"{TEMPLATES}/cells.html#{column}", {"row": row})

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return ModelChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        default_setup = model_setups.default_model()
        default = {
            "model": translate(default_setup.label),
            "source": translate(default_setup.source),
        }
        context = {"default": default}
        return super().changelist_view(request, context | (extra_context or {}))

    def set_all(self, request: HttpRequest, queryset: Any, **values: bool) -> None:
        turned_off = [] if values["enabled"] else [*map(default_uses.of_model, queryset)]
        super().set_all(request, queryset, **values)
        for sentence in filter(None, turned_off):
            messages.warning(request, sentence)

    def changed_message(self, count: int, values: dict[str, bool]) -> str:
        on = ngettext("%(count)d model enabled.", "%(count)d models enabled.", count)
        off = ngettext("%(count)d model disabled.", "%(count)d models disabled.", count)
        return (on if values["enabled"] else off) % {"count": count}

    # The form

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Make the label read-only, because agents refer to it."""
        return ["label"] if obj else []

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Return what every model needs first, and all other fields folded."""
        model_options = {
            "fields": ["tested", "connection", "model", ("label", "is_default"), "enabled"]
        }
        facts = {
            "fields": [
                "context_window",
                ("input_price", "output_price"),
                ("cache_read_price", "cache_write_price"),
                *ABILITY_FIELDS,
            ],
            "description": FROM_PRICE_LIST,
        }
        advanced_fields = ["options", "parameters", "prompt_caching", "fallbacks"]
        limits = ["concurrency", "requests_per_minute", "tokens_per_minute"]
        return [
            (_("Model"), model_options),
            (_("Price, context window and abilities"), facts),
            (_("Advanced settings"), {"fields": advanced_fields, "classes": ["collapse"]}),
            (_("Rate limits"), {"fields": [tuple(limits)], "classes": ["collapse"]}),
            (_("Access"), {"fields": ["groups"], "classes": ["collapse"]}),
        ]

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field: Any = super().formfield_for_dbfield(db_field, request, **options)
        if db_field.name == "connection" and field is not None:
            field.empty_label = None
            # Its own page is a tab; a window for it isn't needed.
            for verb in ("add", "change", "delete", "view"):
                setattr(field.widget, f"can_{verb}_related", False)
        return field

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("connection")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Ask for a connection first, if there is none yet."""
        if self.has_add_permission(request) and not ModelConnection.objects.exists():
            return redirect("admin:agents_modelconnection_add")
        return super().add_view(request, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if record := model_state.read_signed(obj, form.cleaned_data.get("tested", "")):
            obj.last_test = record
        super().save_model(request, obj, form, change)
        CIRCUITS.close(f"model:{obj.label}")  # earlier failures no longer apply
        if obj.enabled and (error := model_setups.configuration_error(obj.label)):
            messages.warning(request, translate(str(error)))

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: Any = None
    ) -> HttpResponse:
        """Offer to use a new model in an agent; only a test shows that it is connected."""
        if "_addanother" in request.POST or "_popup" in request.POST:
            return super().response_add(request, obj, post_url_continue)
        if obj.last_test.get("works"):
            messages.success(request, _("Connected %(model)s.") % {"model": obj.label})
        else:
            sentence = _("Added %(model)s. Test it before you use it.")
            messages.warning(request, sentence % {"model": obj.label})
        return redirect(f"{reverse('admin:agents_languagemodel_change', args=[obj.pk])}?new=1")

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Say what replaces the model before it is deleted, if it is the default."""
        row = self.get_object(request, object_id)
        default = default_uses.of_model(row) if row is not None else ""
        context = {"default_use": default, **(extra_context or {})}
        return super().delete_view(request, object_id, context)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._warn_agents(request, [obj])
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        self._warn_agents(request, queryset)
        super().delete_queryset(request, queryset)

    def _warn_agents(self, request: HttpRequest, rows: Any) -> None:
        for row in rows:
            if names := agents_using(row):
                params = {"model": row.label, "agents": ", ".join(names)}
                messages.warning(request, MODEL_STILL_USED % params)

    # Testing

    def get_urls(self) -> list[URLPattern]:
        prefix = "agents_languagemodel"
        return [
            self.admin_path("facts/", self.facts_view, f"{prefix}_facts"),
            self.admin_path("<int:pk>/use/", self.use_view, f"{prefix}_use"),
            self.admin_path("models/", self.list_view, f"{prefix}_models"),
            self.admin_path("defaults/", defaults.page, f"{prefix}_defaults"),
            self.admin_path("defaults/effect/", defaults.effect, f"{prefix}_default_effect"),
            self.admin_path(
                "defaults/test/<slug:key>/", defaults.test, f"{prefix}_default_test"
            ),
            self.admin_path("test/", self.test_view, f"{prefix}_test_new"),
            self.admin_path("<int:pk>/test/", self.test_view, f"{prefix}_test"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        context["test_url"] = (
            reverse("admin:agents_languagemodel_test", args=[row.pk])
            if row
            else reverse("admin:agents_languagemodel_test_new")
        )
        context["models_url"] = reverse("admin:agents_languagemodel_models")
        context["facts_url"] = reverse("admin:agents_languagemodel_facts")
        if row:
            context["card"] = card_of(row.connection)
            context |= model_page.page_context(request.user, row)
            context["is_new"] = "new" in request.GET
            context |= budgets.applying_to(request, language_model=row)
        context |= dict.fromkeys(["show_save_and_continue", "show_save_and_add_another"], False)
        return super().render_change_form(request, context, *args, **options)

    @method_decorator(require_POST)
    def test_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponseBase:
        """Test the model as described by the form; nothing is saved."""
        # A missing label doesn't matter yet.
        form = posted_form(self, request, pk)
        row = form.instance
        wrong = [
            model_tester.ProbeLine(
                part=str(form[name].label), is_good=False, sentence=" ".join(errors)
            )
            for name, errors in form.errors.items()
            if name in TESTED_FIELDS
        ]
        details: dict[str, Any] = {}
        if row.connection_id is not None:
            # Recorded before it starts, because it sends the key.
            details = dict(model_tester.audit_details(row))
        if wrong:
            details["refused"] = [line.part for line in wrong]
        audit_subject = model_tester.audit_subject(row)
        audit.record(request.user, audit.MODEL_TESTED, audit_subject, **details)
        shell = self.admin_site.each_context(request) | {"opts": self.opts}
        shell["original"] = row if pk else None
        return model_tester.respond(request, row, shell, wrong)

    @method_decorator(require_POST)
    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Return the models of a connection: those found before, or asked for again."""
        if not (self.has_add_permission(request) or self.has_change_permission(request)):
            raise PermissionDenied
        pk = parse_id(request.POST.get("connection")) or 0
        connection = get_object_or_404(ModelConnection, pk=pk)
        if request.POST.get("refresh") == "1":
            listing = listed_models.refresh(request.user, connection)
        else:
            listing = listed_models.listing_of(connection)
        content = listed_models.options_json(connection, listing)
        return JsonResponse(content, headers={"Cache-Control": "no-store"})

    def facts_view(self, request: HttpRequest) -> HttpResponse:
        """Return what the price list says about a model, and a label for it."""
        if not (self.has_add_permission(request) or self.has_change_permission(request)):
            raise PermissionDenied
        pk = parse_id(request.GET.get("connection")) or 0
        connection = get_object_or_404(ModelConnection, pk=pk)
        name = request.GET.get("model", "").strip()[:200]
        try:
            model = model_form.full_name(connection, name)
        except ValidationError:
            model = name
        facts = model_facts.look_up(model)
        label = model_facts.propose_label(model) if name else ""
        return JsonResponse(facts.to_json(label), headers={"Cache-Control": "no-store"})

    @method_decorator(require_POST)
    def use_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Switch an agent to this model, or make it the default."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        row = get_object_or_404(LanguageModel, pk=pk)
        if "default" in request.POST:
            model_page.make_default(request.user, row)
            messages.success(request, _("Made %(model)s the default.") % {"model": row.label})
        elif not request.user.has_perm("agents.change_agent"):
            raise PermissionDenied
        elif agent := Agent.objects.filter(pk=parse_id(request.POST.get("agent")) or 0).first():
            is_off = "off" in request.POST and agent.model in model_usage.names_of(row)
            model_page.use_in_agent(request.user, "" if is_off else row.label, agent)
            model = _("the default model") if is_off else row.label
            params = {"agent": agent.name, "model": model}
            messages.success(request, _("Switched %(agent)s to %(model)s.") % params)
        else:
            messages.warning(request, _("This agent no longer exists."))
        change_url = reverse("admin:agents_languagemodel_change", args=[pk])
        return redirect(f"{change_url}#use")


def agents_using(row: LanguageModel) -> list[str]:
    """Return the agents that use it, also as a fallback."""
    names = {row.label, row.model}
    rows = Agent.objects.values_list("name", "model", "fallback_models")
    return [name for name, model, fallbacks in rows if names & {model, *fallbacks.split()}]
