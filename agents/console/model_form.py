"""The form of a model: settings, secrets and fallback models."""

import json
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.catalog import planner_factory
from agents.llm import model_list, parameters
from agents.llm.parameters.addresses import ADDRESS_HAS_PASSWORD, INVALID_ADDRESS
from agents.llm.providers import PROVIDERS_BY_PREFIX
from agents.models import LanguageModel
from agents.models.secret import UnreadableSecret, WriteOnlyTextarea
from agents.models.types import LazyText
from agents.runs.engine_messages import translate

from .json_field import NOT_STORABLE, help_with_example

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
TESTED_FIELDS = {
    *("provider", "model", "base_url", "api_key", "api_version", "region", "secrets"),
    *("options", "parameters"),
}
SECRET_PATTERN = re.compile(r"key|token|secret|password|credential", re.I)
PRICE_ATTRS = {"class": "vIntegerField", "step": "any", "min": 0}
PRINTABLE_ASCII = re.compile(r"[!-~]+")
# The row itself reports these about its URL.
ROW_PROBLEMS = {INVALID_ADDRESS, ADDRESS_HAS_PASSWORD}
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
