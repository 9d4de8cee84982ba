"""Models: configured for common or any other providers, and tested before saving."""

import json
import re
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
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
from agents.llm import model_list, parameters
from agents.llm.parameters.addresses import ADDRESS_HAS_PASSWORD, INVALID_ADDRESS
from agents.llm.providers import PROVIDERS_BY_PREFIX
from agents.models import Agent, LanguageModel
from agents.models.secret import UnreadableSecret, WriteOnlyTextarea
from agents.models.types import AnyUser, LazyText
from agents.runs.engine_messages import translate

from . import listed_models, model_tester
from .json_field import NOT_STORABLE, JsonObjectField, help_with_example
from .model_admin import ConsoleAdmin

Provider = LanguageModel.Provider

# The first one is added to a name without a prefix.
PREFIXES: dict[str, tuple[str, ...]] = {
    Provider.OPENAI: ("openai",),
    Provider.ANTHROPIC: ("anthropic",),
    Provider.GEMINI: ("gemini",),
    Provider.AZURE: ("azure", "azure_ai"),
    Provider.BEDROCK: ("bedrock",),
    Provider.OLLAMA: ("ollama", "ollama_chat"),
    Provider.COMPATIBLE: ("openai", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy"),
}
# Shown in the empty fields of each provider.
EXAMPLES = {
    Provider.OPENAI: {"model": "gpt-6.1-sol", "base_url": "https://api.openai.com/v1"},
    Provider.ANTHROPIC: {"model": "claude-sonnet-5", "base_url": model_list.ANTHROPIC_URL},
    Provider.GEMINI: {"model": "gemini-3.8-flash", "base_url": model_list.GEMINI_URL},
    Provider.AZURE: {"model": "my-deployment", "base_url": "https://NAME.openai.azure.com"},
    Provider.BEDROCK: {"model": "anthropic.claude-sonnet-4-5-20250929-v1:0"},
    Provider.OLLAMA: {"model": "llama3.3", "base_url": "http://localhost:11434"},
    Provider.COMPATIBLE: {"model": "my-model", "base_url": "http://localhost:8000/v1"},
    Provider.OTHER: {"model": "mistral/mistral-large-4", "base_url": "https://host/v1"},
}
OWN_URL = _("Leave empty to use the provider's own URL. Enter one only for a gateway or proxy.")
# What the URL of each provider looks like.
URL_HELP: dict[str, LazyText] = {
    Provider.OPENAI: OWN_URL,
    Provider.ANTHROPIC: OWN_URL,
    Provider.GEMINI: OWN_URL,
    Provider.AZURE: _("The endpoint of your Azure OpenAI resource, without a path."),
    Provider.OLLAMA: _(
        "Where Ollama runs, without a path. With /v1 at the end, its OpenAI-compatible API is "
        "used instead, which ignores settings such as num_ctx."
    ),
    Provider.COMPATIBLE: _(
        "Usually ends in /v1. vLLM: port 8000, LM Studio: 1234, llama-server: 8080, LiteLLM "
        "proxy: 4000, OpenRouter: https://openrouter.ai/api/v1."
    ),
    Provider.OTHER: _("Leave empty to use the provider's own URL."),
}
# Fields that only some providers need; all others are always visible.
PROVIDER_FIELDS: dict[str, list[Provider]] = {
    "base_url": [provider for provider in Provider if provider != Provider.BEDROCK],
    "api_version": [Provider.AZURE],
    "region": [Provider.BEDROCK],
    "secrets": [Provider.AZURE, Provider.BEDROCK, Provider.OTHER],
    "options": [
        *(Provider.AZURE, Provider.BEDROCK, Provider.OLLAMA),
        *(Provider.COMPATIBLE, Provider.OTHER),
    ],
}
NEEDS_BASE_URL: set[str] = {Provider.AZURE, Provider.COMPATIBLE}
TESTED_FIELDS = {"provider", "model", "base_url", "api_key", "api_version", "region", "secrets"}
TESTED_FIELDS |= {"options", "parameters"}
CONNECTION_FIELDS: list[Any] = [
    *("provider", "model", "base_url", "api_key", "forget_key"),
    *("api_version", "region", "secrets", "options"),
]
SECRET_PATTERN = re.compile(r"key|token|secret|password|credential", re.I)
PRICE_ATTRS = {"class": "vIntegerField", "step": "any", "min": 0}
PRINTABLE_ASCII = re.compile(r"[!-~]+")
# The row itself reports these about its URL.
ROW_PROBLEMS = {INVALID_ADDRESS, ADDRESS_HAS_PASSWORD}


class LanguageModelForm(forms.ModelForm):
    """Knows common providers, and rejects models that couldn't be called."""

    forget_key = forms.BooleanField(label=_("Remove key"), required=False)

    class Meta:
        widgets = {
            "model": forms.TextInput(
                attrs={
                    "class": "vLargeTextField",
                    "spellcheck": "false",
                    "autocomplete": "off",
                    "list": "listed-models",
                }
            ),
            "base_url": forms.TextInput(
                attrs={"class": "vLargeTextField", "inputmode": "url", "spellcheck": "false"}
            ),
            "api_key": forms.PasswordInput(
                attrs={"class": "vLargeTextField", "autocomplete": "new-password"}
            ),
            "secrets": WriteOnlyTextarea(
                attrs={"class": "vLargeTextField code", "rows": 4, "spellcheck": "false"}
            ),
            "fallbacks": forms.Textarea(
                attrs={"class": "vLargeTextField code", "rows": 3, "spellcheck": "false"}
            ),
            "input_price": forms.NumberInput(attrs=PRICE_ATTRS),
            "output_price": forms.NumberInput(attrs=PRICE_ATTRS),
        }
        help_texts = {
            "model": _(
                "The provider's name for the model. For Azure, your deployment name; "
                "for other LiteLLM providers, provider/model."
            ),
            "base_url": _("Leave empty to use the provider's own URL."),
            "api_version": _("Azure only, e.g. 2024-10-21. Leave empty for the default."),
            "region": _("Amazon Bedrock only, e.g. eu-central-1."),
            "options": _(
                'JSON object, e.g. {"num_ctx": 8192}. Only settings that the provider supports '
                "are allowed."
            ),
            "parameters": help_with_example(
                _("Sent with every request. Agents have their own limits."),
                {"temperature": 0.2, "reasoning_effort": "low"},
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        is_set, has_more = bool(self.instance.api_key), bool(self.instance.secrets)
        words = {"api_key": KEY_SET if is_set else KEY_NOT_SET}
        words["secrets"] = SECRETS_SET if has_more else SECRETS_NOT_SET
        for name in words.keys() & self.fields.keys():
            self.fields[name].help_text = words[name]
        if not is_set:
            self.fields.pop("forget_key", None)
        for name in PROVIDER_FIELDS.keys() & self.fields.keys():
            self.fields[name].widget.attrs["data-for"] = " ".join(PROVIDER_FIELDS[name])
        for name in {"options", "parameters"} & self.fields.keys():
            self.fields[name].widget.attrs["rows"] = 4
            self.fields[name].show_hidden_initial = False
            self.fields[name].initial = self.initial[name] = self.initial.get(name) or None
        if "provider" in self.fields:
            self.fields["provider"].widget.attrs["data-examples"] = json.dumps(EXAMPLES)
            helps = {provider: str(text) for provider, text in URL_HELP.items()}
            self.fields["provider"].widget.attrs["data-url-help"] = json.dumps(helps)

    def clean_model(self) -> str:
        """Return the name in LiteLLM's format, with its provider prefix."""
        name, provider = self.cleaned_data["model"], self.cleaned_data.get("provider", "")
        prefixes = PREFIXES.get(provider, ())
        before = name.partition("/")[0]
        if prefixes and before not in prefixes:
            if (
                "/" in name
                and before in PROVIDERS_BY_PREFIX
                and provider != Provider.COMPATIBLE
            ):
                label = PROVIDERS_BY_PREFIX[before].label
                raise ValidationError(WRONG_PROVIDER, params={"provider": label})
            name = f"{prefixes[0]}/{name}"
        if sentence := parameters.name_problem(name):
            raise ValidationError(translate(sentence))
        return name

    def clean_api_key(self) -> str:
        key: str = self.cleaned_data["api_key"]
        if key and not PRINTABLE_ASCII.fullmatch(key):
            raise ValidationError(_("A key can contain only ASCII characters, without spaces."))
        return key

    def clean_options(self) -> dict[str, Any]:
        options = self.cleaned_data["options"] or {}
        allowed = parameters.allowed_options(
            parameters.provider_prefix(self.cleaned_data.get("model", ""))
        )
        secret = {name for name in options if SECRET_PATTERN.search(name)} - allowed.keys()
        _reject_names(secret, SECRETS_MISPLACED)
        return options

    def clean_parameters(self) -> dict[str, Any]:
        return self.cleaned_data["parameters"] or {}

    def clean_secrets(self) -> Any:
        secrets = self.cleaned_data["secrets"]
        if secrets in (None, ""):
            return secrets
        if not isinstance(secrets, dict) or {*map(type, secrets.values())} - {str}:
            raise ValidationError(_("Enter a JSON object with string values: {…}."))
        try:
            json.dumps(secrets, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValidationError(NOT_STORABLE) from error
        return secrets

    def clean_fallbacks(self) -> str:
        names = list(dict.fromkeys(self.cleaned_data["fallbacks"].split()))
        if self.cleaned_data.get("label", self.instance.label) in names:
            raise ValidationError(_("A model can't be its own fallback."))
        known = {planner_factory.DEMO, *LanguageModel.objects.values_list("label", flat=True)}
        others = [name for name in names if name not in known]
        if wrong := [
            planner_factory.name_problem(name)
            for name in others
            if planner_factory.name_problem(name)
        ]:
            raise ValidationError([translate(sentence) for sentence in wrong])
        return "\n".join(names)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("provider") in NEEDS_BASE_URL and cleaned.get("base_url") == "":
            self.add_error("base_url", _("Enter the URL."))
        saved = LanguageModel.objects.filter(pk=self.instance.pk).first()
        if cleaned.get("forget_key"):
            self.instance.api_key = ""
        for name, sentence in REENTER_SECRET.items():
            self._check_stored_secret(name, sentence, cleaned, saved)
        if "model" in cleaned:
            self._check_settings(cleaned)
        return cleaned

    def _check_settings(self, cleaned: dict[str, Any]) -> None:
        """Run the checks made before each request, and report problems by field."""
        try:
            settings = planner_factory.model_settings(self._pending_row(cleaned))
        except UnreadableSecret:
            return  # already an error of the field
        for problem in parameters.find_problems(settings):
            is_here = problem.field in self.fields and problem.field not in self.errors
            if is_here and problem.sentence not in ROW_PROBLEMS:
                self.add_error(problem.field, translate(problem.sentence))

    def _pending_row(self, cleaned: dict[str, Any]) -> LanguageModel:
        """Return the row as it would be saved; secrets that weren't typed stay."""
        row = LanguageModel()
        for name in TESTED_FIELDS:
            typed = cleaned.get(name)
            is_kept = name not in cleaned or (name in REENTER_SECRET and typed in (None, ""))
            setattr(row, name, getattr(self.instance, name) if is_kept else typed)
        return row

    def _check_stored_secret(
        self,
        name: str,
        sentence: LazyText,
        cleaned: dict[str, Any],
        saved: LanguageModel | None,
    ) -> None:
        """Check that a saved secret is readable and isn't sent to another destination."""
        secret = getattr(self.instance, name)
        if name in self.errors or not secret or cleaned.get(name) not in (None, ""):
            return
        try:
            secret.reveal()
        except UnreadableSecret as error:
            self.add_error(name, translate(str(error)))
            return
        if saved and _destination(self._pending_row(cleaned)) != _destination(saved):
            self.add_error(name, sentence)


def _destination(row: LanguageModel) -> tuple[Any, ...]:
    """Return the row's destination; a form trusts its own hidden fields."""
    return parameters.destination(
        planner_factory.model_settings(row, secrets=False), row.provider
    )


def _reject_names(names: set[str], sentence: LazyText) -> None:
    if names:
        raise ValidationError(sentence, params={"names": ", ".join(sorted(names))})


WRONG_PROVIDER = _("This model is from %(provider)s. Change the provider to match.")
SECRETS_MISPLACED = _("%(names)s: move this to “Additional secrets”, which are encrypted.")
KEY_SET = _("Already set. Leave empty to keep it.")
KEY_NOT_SET = _(
    "Encrypted and never displayed again. Leave empty to use the provider's key from "
    "the environment (only with the provider's own URL)."
)
SECRETS_SET = _("Already set. Leave empty to keep them, or enter {} to remove them.")
SECRETS_NOT_SET = _(
    "JSON object with string values, encrypted and never displayed again: "
    '{"aws_access_key_id": "…", "aws_secret_access_key": "…"}'
)
REENTER_SECRET = {
    "api_key": _("This key was set for a different URL. Enter it again, or remove it."),
    "secrets": _(
        "These secrets were set for a different URL. Enter them again, or "
        "enter {} to remove them."
    ),
}


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


LIST_NEEDS_PROVIDER = _("Enter the provider before a slash, e.g. mistral/, to see its models.")
MODEL_STILL_USED = _("%(model)s was deleted, but these agents still use it: %(agents)s.")


def agents_using(row: LanguageModel) -> list[str]:
    """Return the agents that use it, also as a fallback."""
    names = {row.label, row.model}
    used = Agent.objects.values_list("name", "model", "fallback_models")
    return [name for name, model, others in used if names & {model, *others.split()}]
