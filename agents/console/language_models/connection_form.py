"""The form of a connection: provider, URL and key, which never comes back to the browser."""

import re
from typing import Any, cast
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.llm import parameters
from agents.llm.discovery.model_list import ANY_MODEL
from agents.llm.parameters.addresses import ADDRESS_HAS_PASSWORD, INVALID_ADDRESS
from agents.models import ModelConnection
from agents.models.secret import UnreadableSecret
from agents.models.types import LazyText
from agents.web.presentation.formats.icons import icon

from ..admin_classes.secret_pairs import SecretPairsField, merge_pairs
from .model_providers import CARDS, Provider, card_of, default_card, environment_key

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
# What decides where a connection leads, and whether it is let in.
ACCESS_FIELDS = (
    *("provider", "prefix", "base_url", "api_key", "api_version", "region"),
    *("secrets", "options"),
)
SECRET_PATTERN = re.compile(r"key|token|secret|password|credential", re.I)
PRINTABLE_ASCII = re.compile(r"[!-~]+")
MAX_NAME_CHARS = 100
# The row itself reports these about its URL.
ROW_PROBLEMS = {INVALID_ADDRESS, ADDRESS_HAS_PASSWORD}
PROVIDER_FIXED = _(
    "The provider can’t be changed, because this connection has models. Add another connection."
)
SECRETS_MISPLACED = _("%(names)s: move this to “Additional secrets”, which are encrypted.")
REENTER_SECRET = {
    "api_key": _("This key was set for a different URL. Enter it again, or remove it."),
    "secrets": _(
        "These secrets were set for a different URL. Enter their values again, or remove them."
    ),
}


class SavedKeyInput(forms.PasswordInput):
    """A key that never comes back: if one is saved, the field says so and can replace it."""

    saved_note: LazyText = ""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        field = super().render(name, value, attrs, renderer)
        if not self.saved_note:
            return field
        html = (
            '<details class="saved-key"><summary>{}<span>{}</span> <span class="replace">{}'
            "</span></summary>{}</details>"
        )
        return format_html(html, icon("key"), self.saved_note, _("Replace"), field)


class ConnectionForm(forms.ModelForm):
    """Knows common providers, and rejects connections that couldn't be used."""

    forget_key = forms.BooleanField(label=_("Remove key"), required=False)
    preset = forms.CharField(required=False, widget=forms.HiddenInput)
    keeps_some_secrets = False  # only some were entered

    class Meta:
        widgets = {
            "provider": forms.HiddenInput,
            "prefix": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
            "base_url": forms.TextInput(
                attrs={"class": "vLargeTextField", "inputmode": "url", "spellcheck": "false"}
            ),
            "api_key": SavedKeyInput(
                attrs={"class": "vLargeTextField", "autocomplete": "new-password"}
            ),
        }
        help_texts = {
            "api_version": _("E.g. 2024-10-21. Leave empty for the default."),
            "region": _("E.g. eu-central-1."),
            "options": _(
                'JSON object, e.g. {"vertex_project": "my-project"}. Sent with the requests '
                "of all its models."
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
        self.initial.setdefault("preset", self.card.key)
        self._describe_secrets()
        self._describe_fields()

    def _describe_secrets(self) -> None:
        is_set = bool(self.instance.api_key)
        key = self.fields.get("api_key")
        if key is not None:
            key.help_text = self.card.key_help
        if key is not None and isinstance(key.widget, SavedKeyInput) and self.instance.pk:
            if is_set:
                key.widget.saved_note = _("A key is saved")
            elif variable := environment_key(self.instance):
                note = gettext("From the environment (%(name)s)")
                key.widget.saved_note = note % {"name": variable}
            if key.widget.saved_note:
                key.help_text = ""  # it says so itself
        if not is_set:
            self.fields.pop("forget_key", None)

    def _describe_fields(self) -> None:
        """Give the fields the examples of the provider."""
        card = self.card
        if "name" in self.fields and not self.instance.pk:
            self.fields["name"].required = False  # proposed
            self.fields["name"].widget.attrs["placeholder"] = str(card.label)
        if "base_url" in self.fields:
            self.fields["base_url"].widget.attrs["placeholder"] = card.url
            self.fields["base_url"].help_text = card.url_help
        if "prefix" in self.fields and card.prefix:
            self.fields["prefix"].widget = forms.HiddenInput()
        if "options" in self.fields:
            self.fields["options"].widget.attrs["rows"] = 4
            self.fields["options"].show_hidden_initial = False
            self.fields["options"].initial = self.initial.get("options") or None
            self.initial["options"] = self.initial.get("options") or None

    def clean_api_key(self) -> str:
        key: str = self.cleaned_data["api_key"]
        if key and not PRINTABLE_ASCII.fullmatch(key):
            raise ValidationError(_("A key can contain only ASCII characters, without spaces."))
        return key

    def clean_options(self) -> dict[str, Any]:
        return self.cleaned_data["options"] or {}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        provider = cleaned.get("provider", "")
        cleaned["prefix"] = self._prefix(provider, cleaned.get("prefix", ""))
        if provider == Provider.OTHER and "prefix" not in self.errors:
            name = f"{cleaned['prefix']}/{ANY_MODEL}"
            if not cleaned["prefix"]:
                self.add_error("prefix", _("Enter the provider, e.g. mistral."))
            elif sentence := parameters.name_problem(name):
                self.add_error("prefix", translate(sentence))
        if "options" in cleaned:
            allowed = parameters.allowed_options(cleaned.get("prefix", ""))
            check_no_secrets(self, cleaned["options"], allowed)
        if provider in NEEDS_BASE_URL and cleaned.get("base_url") == "":
            self.add_error("base_url", _("Enter the URL."))
        if not cleaned.get("name") and "name" not in self.errors:
            cleaned["name"] = propose_name(str(self.card.label), cleaned.get("base_url") or "")
        saved = ModelConnection.objects.filter(pk=self.instance.pk).first()
        if cleaned.get("forget_key"):
            self.instance.api_key = ""
        for name, note in REENTER_SECRET.items():
            self._check_stored_secret(name, note, cleaned, saved)
        # The checks made before each request.
        try:
            settings = model_setups.connection_settings(self.pending_row(cleaned))
        except UnreadableSecret:
            return cleaned  # already an error of the field
        for problem in parameters.find_problems(settings):
            is_here = problem.field in self.fields and problem.field not in self.errors
            if is_here and problem.sentence not in ROW_PROBLEMS:
                self.add_error(problem.field, translate(problem.sentence))
        return cleaned

    def _prefix(self, provider: str, typed: str) -> str:
        """Return the prefix of its models: what was typed, the card's, or the provider's."""
        prefixes = PREFIXES.get(provider, ())
        of_card = self.card.prefix if self.card.provider == provider else ""
        if not prefixes:
            return typed or of_card
        return next((prefix for prefix in (typed, of_card) if prefix in prefixes), prefixes[0])

    def pending_row(self, cleaned: dict[str, Any]) -> ModelConnection:
        """Return the row as it would be saved; secrets that weren't typed stay."""
        row = ModelConnection()
        for name in ACCESS_FIELDS:
            typed = cleaned.get(name)
            is_kept = name not in cleaned or (name in REENTER_SECRET and typed in (None, ""))
            setattr(row, name, getattr(self.instance, name) if is_kept else typed)
        return row

    def _check_stored_secret(
        self,
        name: str,
        sentence: LazyText,
        cleaned: dict[str, Any],
        saved: ModelConnection | None,
    ) -> None:
        """Check that a saved secret is readable and isn't sent to another destination."""
        secret = getattr(self.instance, name)
        is_kept = cleaned.get(name) in (None, "") or (
            name == "secrets" and self.keeps_some_secrets
        )
        if name in self.errors or not secret or not is_kept:
            return
        try:
            secret.reveal()
        except UnreadableSecret as error:
            self.add_error(name, translate(str(error)))
            return
        if saved and _destination(self.pending_row(cleaned)) != _destination(saved):
            self.add_error(name, sentence)


class ConnectionPageForm(ConnectionForm):
    """The same connection as people enter it: a row for each additional secret."""

    secrets = SecretPairsField(
        label=_("Additional secrets"),
        add_label=_("Add secret"),
        help_text=_(
            "E.g. aws_access_key_id and aws_secret_access_key. Values are stored encrypted and "
            "never displayed again."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(SecretPairsField, self.fields["secrets"]).show_saved(self.instance.secrets)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        saved = ModelConnection.objects.filter(pk=self.instance.pk, models__isnull=False)
        for provider, prefix in saved.values_list("provider", "prefix")[:1]:
            # The names of its models begin with the provider.
            if cleaned.get("provider") != provider:
                self.add_error("provider", PROVIDER_FIXED)
            elif provider == Provider.OTHER and cleaned["prefix"] != prefix:
                self.add_error("prefix", PROVIDER_FIXED)
        return cleaned

    def clean_secrets(self) -> Any:
        secrets, self.keeps_some_secrets = merge_pairs(
            self.cleaned_data["secrets"], self.instance.secrets
        )
        return secrets


def check_no_secrets(form: Any, options: dict[str, Any], allowed: Any) -> None:
    """Add an error if a secret was entered as an additional setting."""
    misplaced = {name for name in options if SECRET_PATTERN.search(name)} - allowed.keys()
    if misplaced:
        params = {"names": ", ".join(sorted(misplaced))}
        form.add_error("options", ValidationError(SECRETS_MISPLACED, params=params))


def propose_name(label: str, address: str) -> str:
    """Return a free name: the provider's, or else with the host of the server."""
    names = [label]
    try:
        if host := urlsplit(address).netloc.rpartition("@")[2]:
            names.append(f"{label} ({host})")
    except ValueError:
        pass  # an error of the field
    names = [name[: MAX_NAME_CHARS - 5] for name in names]
    names += [f"{names[-1]} {number}" for number in range(2, 1000)]
    used_names = set(ModelConnection.objects.values_list("name", flat=True))
    return next(name for name in names if name not in used_names)


def _destination(row: ModelConnection) -> tuple[Any, ...]:
    """Return the row's destination; a form trusts its own hidden fields."""
    settings = model_setups.connection_settings(row, secrets=False)
    return parameters.destination(settings, row.provider)
