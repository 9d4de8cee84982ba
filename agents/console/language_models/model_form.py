"""The form of a model: its name, parameters and fallback models."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.llm import parameters
from agents.llm.providers import PROVIDERS_BY_PREFIX
from agents.models import LanguageModel, ModelConnection
from agents.models.secret import UnreadableSecret
from agents.models.types import LazyText

from ..admin_classes.json_field import help_with_example
from . import default_uses
from .connection_form import PREFIXES, check_no_secrets
from .model_facts import ABILITIES, IMAGES, propose_label
from .model_providers import Provider, card_of, short_name

# What decides whether a model works, besides its connection.
TESTED_FIELDS = {"connection", "model", "options", "parameters"}
PRICE_ATTRS = {"class": "vIntegerField", "step": "any", "min": 0}
WRONG_PROVIDER = _("This model is from %(provider)s. Choose or add a connection to it.")
SET_IN_CONNECTION = _("%(names)s: set this in the connection.")


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

    tested = forms.CharField(required=False, widget=forms.HiddenInput)
    can_tools = AbilityField(ABILITIES["tools"])
    can_audio = AbilityField(ABILITIES["audio"])
    can_schema = AbilityField(ABILITIES["schema"])
    can_reasoning = AbilityField(ABILITIES["reasoning"])

    class Meta:
        widgets = {
            "model": forms.TextInput(
                attrs={
                    "class": "vLargeTextField",
                    "spellcheck": "false",
                    "autocomplete": "off",
                    "autocapitalize": "off",
                }
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
        self._describe_model()
        self._describe_abilities()
        for name in {"options", "parameters"} & self.fields.keys():
            self.fields[name].widget.attrs["rows"] = 4
            self.fields[name].show_hidden_initial = False
            self.fields[name].initial = self.initial[name] = self.initial.get(name) or None
        if "label" in self.fields and not self.instance.pk:
            self.fields["label"].required = False  # proposed by the model's name
        if "enabled" in self.fields and (default := default_uses.of_model(self.instance)):
            self.fields["enabled"].help_text = default

    def _describe_model(self) -> None:
        """Give the fields the examples of the connection's provider."""
        chosen = str(self.initial.get("connection") or "")
        connection = self.instance.connection if self.instance.pk else None
        if connection is None and chosen.isdecimal():
            connection = ModelConnection.objects.filter(pk=chosen).first()
        if connection is None or "model" not in self.fields:
            return
        card = card_of(connection)
        self.fields["model"].widget.attrs["placeholder"] = card.model
        if self.instance.pk and not self.is_bound:
            self.initial["model"] = short_name(self.instance)
        if card.provider == Provider.AZURE:
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
        connection: ModelConnection | None = self.cleaned_data.get("connection")
        if connection is None:
            return name
        name = full_name(connection, name)
        if sentence := parameters.name_problem(name):
            raise ValidationError(translate(sentence))
        return name

    def clean_image_input(self) -> str:
        return self.cleaned_data["image_input"] or LanguageModel.ImageInput.AUTO

    def clean_parameters(self) -> dict[str, Any]:
        return self.cleaned_data["parameters"] or {}

    def clean_options(self) -> dict[str, Any]:
        options = self.cleaned_data["options"] or {}
        if names := sorted(options.keys() & parameters.DESTINATION_OPTIONS):
            raise ValidationError(SET_IN_CONNECTION, params={"names": ", ".join(names)})
        return options

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
        if isinstance(cleaned.get("options"), dict):
            prefix = parameters.provider_prefix(cleaned.get("model", ""))
            check_no_secrets(self, cleaned["options"], parameters.allowed_options(prefix))
        if "model" in cleaned and cleaned.get("connection"):
            # The checks made before each request.
            try:
                settings = model_setups.model_settings(self._pending_row(cleaned))
            except UnreadableSecret:
                return cleaned  # the connection's page says so
            for problem in parameters.find_problems(settings):
                if problem.field in self.fields and problem.field not in self.errors:
                    self.add_error(problem.field, translate(problem.sentence))
        return cleaned

    def validate_constraints(self) -> None:
        """Accept a second default model: the former one steps back when this one is saved."""

    def _pending_row(self, cleaned: dict[str, Any]) -> LanguageModel:
        """Return the row as it would be saved."""
        row = LanguageModel()
        for name in TESTED_FIELDS:
            setattr(row, name, cleaned.get(name, getattr(self.instance, name, None)))
        return row


def full_name(connection: ModelConnection, name: str) -> str:
    """Return the name with the prefix of its provider; raise ValidationError for another's."""
    prefixes = (connection.prefix, *PREFIXES.get(connection.provider, ()))
    prefix, slash, _rest = name.partition("/")
    if slash and prefix in prefixes:
        return name
    # Servers and gateways have models of many providers.
    is_own = connection.provider not in {Provider.COMPATIBLE, Provider.OTHER}
    if slash and prefix in PROVIDERS_BY_PREFIX and is_own:
        label = PROVIDERS_BY_PREFIX[prefix].label
        raise ValidationError(WRONG_PROVIDER, params={"provider": label})
    return f"{connection.prefix}/{name}"
