"""The form of a model: settings, secrets and fallback models."""

import json
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.llm import parameters
from agents.llm.parameters.addresses import ADDRESS_HAS_PASSWORD, INVALID_ADDRESS
from agents.llm.providers import PROVIDERS_BY_PREFIX
from agents.models import LanguageModel
from agents.models.secret import UnreadableSecret, WriteOnlyTextarea
from agents.models.types import LazyText
from agents.web.presentation.formats.icons import icon

from ..admin_classes.json_field import NOT_STORABLE, help_with_example
from .model_facts import ABILITIES, IMAGES, propose_label
from .model_providers import CARDS, card_of, default_card, short_name

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
NEEDS_BASE_URL: set[str] = {Provider.AZURE, Provider.COMPATIBLE}
TESTED_FIELDS = {
    "provider",
    "model",
    "base_url",
    "api_key",
    "api_version",
    "region",
    "secrets",
    "options",
    "parameters",
}
SECRET_PATTERN = re.compile(r"key|token|secret|password|credential", re.I)
PRICE_ATTRS = {"class": "vIntegerField", "step": "any", "min": 0}
PRINTABLE_ASCII = re.compile(r"[!-~]+")
# The row itself reports these about its URL.
ROW_PROBLEMS = {INVALID_ADDRESS, ADDRESS_HAS_PASSWORD}
WRONG_PROVIDER = _("This model is from %(provider)s. Change the provider to match.")
SECRETS_MISPLACED = _("%(names)s: move this to “Additional secrets”, which are encrypted.")
KEY_SET = _("Already set. Leave empty to keep it.")
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


class SavedKeyInput(forms.PasswordInput):
    """A key that never comes back: if one is saved, the field says so and can replace it."""

    is_saved = False

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        field = super().render(name, value, attrs, renderer)
        if not self.is_saved:
            return field
        html = (
            '<details class="saved-key"><summary>{}<span>{}</span> <span class="replace">{}'
            "</span></summary>{}</details>"
        )
        return format_html(html, icon("key"), _("A key is saved"), _("Replace"), field)


class AbilityField(forms.TypedChoiceField):
    """Whether a model can do something: yes, no, or as the price list says."""

    def __init__(self, label: LazyText) -> None:
        super().__init__(
            label=label,
            choices=LanguageModel.ImageInput.choices,
            coerce=lambda text: {"yes": True, "no": False}.get(text),
            empty_value=None,
            required=False,
        )


class LanguageModelForm(forms.ModelForm):
    """Knows common providers, and rejects models that couldn't be called."""

    forget_key = forms.BooleanField(label=_("Remove key"), required=False)
    preset = forms.CharField(required=False, widget=forms.HiddenInput)
    tested = forms.CharField(required=False, widget=forms.HiddenInput)
    can_tools = AbilityField(ABILITIES["tools"])
    can_audio = AbilityField(ABILITIES["audio"])
    can_schema = AbilityField(ABILITIES["schema"])
    can_reasoning = AbilityField(ABILITIES["reasoning"])

    class Meta:
        widgets = {
            "provider": forms.HiddenInput,
            "model": forms.TextInput(
                attrs={
                    "class": "vLargeTextField",
                    "spellcheck": "false",
                    "autocomplete": "off",
                    "autocapitalize": "off",
                }
            ),
            "base_url": forms.TextInput(
                attrs={"class": "vLargeTextField", "inputmode": "url", "spellcheck": "false"}
            ),
            "api_key": SavedKeyInput(
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
            "cache_read_price": forms.NumberInput(attrs=PRICE_ATTRS),
            "cache_write_price": forms.NumberInput(attrs=PRICE_ATTRS),
        }
        help_texts = {
            "api_version": _("E.g. 2024-10-21. Leave empty for the default."),
            "region": _("E.g. eu-central-1."),
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
        # The provider that was chosen, or the row's.
        chosen = self.data.get("preset") or self.initial.get("preset") or ""
        provider = self.data.get("provider") or self.initial.get("provider") or Provider.OPENAI
        if chosen in CARDS:
            self.card = CARDS[chosen]
        elif self.instance.pk:
            self.card = card_of(self.instance)
        else:
            self.card = default_card(str(provider))
        self._describe_secrets()
        self._describe_connection()
        self._describe_abilities()
        for name in {"options", "parameters"} & self.fields.keys():
            self.fields[name].widget.attrs["rows"] = 4
            self.fields[name].show_hidden_initial = False
            self.fields[name].initial = self.initial[name] = self.initial.get(name) or None
        if "label" in self.fields and not self.instance.pk:
            self.fields["label"].required = False  # proposed by the model's name

    def _describe_secrets(self) -> None:
        is_set = bool(self.instance.api_key)
        has_more = bool(self.instance.secrets)
        help_texts = {"api_key": KEY_SET if is_set else self.card.key_help}
        help_texts["secrets"] = SECRETS_SET if has_more else SECRETS_NOT_SET
        for name in help_texts.keys() & self.fields.keys():
            self.fields[name].help_text = help_texts[name]
            if isinstance(self.fields[name].widget, SavedKeyInput):
                self.fields[name].widget.is_saved = is_set
        if not is_set:
            self.fields.pop("forget_key", None)

    def _describe_connection(self) -> None:
        """Give the fields the examples of the provider."""
        card = self.card
        self.initial.setdefault("preset", card.key)
        if self.instance.pk and not self.is_bound:
            self.initial["model"] = short_name(self.instance)
        examples = {"model": card.model, "base_url": card.url}
        for name in examples.keys() & self.fields.keys():
            self.fields[name].widget.attrs["placeholder"] = examples[name]
        if "base_url" in self.fields:
            self.fields["base_url"].help_text = card.url_help
        if "model" in self.fields and card.provider == Provider.AZURE:
            self.fields["model"].label = _("Deployment")

    def _describe_abilities(self) -> None:
        """Fill in the row's overrides, and what applies without one."""
        overrides = self.instance.abilities or {}
        for name in ABILITIES:
            field = "image_input" if name == IMAGES else f"can_{name}"
            if field not in self.fields:
                continue
            if name != IMAGES:
                override = overrides.get(name)
                self.initial[field] = (
                    "auto" if override is None else "yes" if override else "no"
                )
            self.fields[field].widget.attrs["data-ability"] = name
        if "image_input" in self.fields:
            self.fields["image_input"].label = ABILITIES[IMAGES]
            self.fields["image_input"].help_text = ""
            self.fields["image_input"].required = False  # automatic

    def clean_model(self) -> str:
        """Return the name in LiteLLM's format, with its provider prefix."""
        name = self.cleaned_data["model"]
        provider = self.cleaned_data.get("provider", "")
        prefixes = PREFIXES.get(provider, ())
        if self.card.provider == provider and self.card.prefix:
            prefixes = tuple(dict.fromkeys([self.card.prefix, *prefixes]))
        prefix = name.partition("/")[0]
        if prefixes and prefix not in prefixes:
            # Servers and gateways have models of many providers.
            is_own = provider not in {Provider.COMPATIBLE, Provider.OTHER}
            if "/" in name and prefix in PROVIDERS_BY_PREFIX and is_own:
                label = PROVIDERS_BY_PREFIX[prefix].label
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
        if secret:
            names = ", ".join(sorted(secret))
            raise ValidationError(SECRETS_MISPLACED, params={"names": names})
        return options

    def clean_image_input(self) -> str:
        return self.cleaned_data["image_input"] or LanguageModel.ImageInput.AUTO

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
        labels = {model_setups.DEMO, *LanguageModel.objects.values_list("label", flat=True)}
        problems = [model_setups.name_problem(name) for name in names if name not in labels]
        if any(problems):
            raise ValidationError([translate(problem) for problem in problems if problem])
        return "\n".join(names)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("label") and "label" not in self.errors and "model" in cleaned:
            cleaned["label"] = propose_label(cleaned["model"])
        if "abilities" in self.fields:  # a configuration file has the whole column
            cleaned["abilities"] = cleaned.get("abilities") or {}
        else:
            choices = {name: cleaned.get(f"can_{name}") for name in ABILITIES if name != IMAGES}
            self.instance.abilities = {n: v for n, v in choices.items() if v is not None}
        if cleaned.get("provider") in NEEDS_BASE_URL and cleaned.get("base_url") == "":
            self.add_error("base_url", _("Enter the URL."))
        saved = LanguageModel.objects.filter(pk=self.instance.pk).first()
        if cleaned.get("forget_key"):
            self.instance.api_key = ""
        for name, sentence in REENTER_SECRET.items():
            self._check_stored_secret(name, sentence, cleaned, saved)
        if "model" in cleaned:
            # The checks made before each request.
            try:
                settings = model_setups.model_settings(self._pending_row(cleaned))
            except UnreadableSecret:
                return cleaned  # already an error of the field
            for problem in parameters.find_problems(settings):
                is_here = problem.field in self.fields and problem.field not in self.errors
                if is_here and problem.sentence not in ROW_PROBLEMS:
                    self.add_error(problem.field, translate(problem.sentence))
        return cleaned

    def validate_constraints(self) -> None:
        """Accept a second default model: the former one steps back when this one is saved."""

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
    return parameters.destination(model_setups.model_settings(row, secrets=False), row.provider)
