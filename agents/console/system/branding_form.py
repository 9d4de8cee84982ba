"""The form of the installation's branding: each text in all languages, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.db.installation import branding
from agents.db.installation.setting import ROWS, TextSetting
from agents.web.branding import Branding

LOGO_ENDINGS = ".png,.jpg,.jpeg,.webp,.svg"
KIND_LABELS = {
    branding.INFO: _("Info"),
    branding.WARNING: _("Warning"),
}
PLACEHOLDERS = {branding.COLOR_SETTING.key: "#2563eb"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """A text of the form, with a field per language."""

    label: Any
    fields: list[forms.BoundField]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoRow:
    """A logo of the form: its upload, and what is saved."""

    field: forms.BoundField
    removed: forms.BoundField
    mode: str  # the backgrounds it is for
    url: str


class BrandingForm(forms.Form):
    """Only what was changed on this page is saved."""

    def __init__(self, *args: Any, may_change: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for setting in branding.SETTINGS.values():
            field = forms.CharField(
                label=str(setting.label),
                required=False,
                strip=False,  # the setting does that
                widget=_widget(setting),
                initial=setting.value,
                show_hidden_initial=may_change,
                disabled=not may_change,
            )
            self.fields[setting.key] = field
        for language_row in branding.LOCALIZED:
            for code, setting in language_row.by_language.items():
                self.fields[setting.key].widget.attrs["lang"] = code
        for key, label in branding.LOGOS.items():
            self.fields[key] = forms.FileField(
                label=label,
                required=False,
                disabled=not may_change,
                widget=forms.FileInput(attrs={"accept": LOGO_ENDINGS, "data-logo": key}),
            )
            self.fields[f"{key}_removed"] = forms.BooleanField(
                label=_("Remove"), required=False, disabled=not may_change
            )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for key, setting in branding.SETTINGS.items():
            if key not in cleaned:
                continue
            try:
                cleaned[key] = setting.clean(cleaned[key])
            except ValidationError as error:
                self.add_error(key, error)
        return cleaned

    def changed_values(self) -> dict[str, str]:
        """Return the values of the settings that were changed on this page."""
        return {
            key: self.cleaned_data[key] for key in self.changed_data if key in branding.SETTINGS
        }

    def preview_values(self) -> dict[str, Any]:
        """Return all values as they would be saved; invalid ones as they are now."""
        self.is_valid()
        cleaned = self.cleaned_data
        valid = {key: cleaned[key] for key in branding.SETTINGS if key in cleaned}
        return {**ROWS.get(), **valid}

    def name_row(self) -> TextRow:
        return self._row(branding.NAME)

    def banner_row(self) -> TextRow:
        return self._row(branding.BANNER)

    def start_rows(self) -> list[TextRow]:
        texts = (branding.START_HEADING, branding.START_TEXT, branding.START_QUESTIONS)
        return [self._row(text) for text in texts]

    def logos(self, saved: Branding) -> list[LogoRow]:
        """Return the fields of the logos, with those that are saved."""
        return [
            LogoRow(
                field=self[key],
                removed=self[f"{key}_removed"],
                mode=mode,
                url=url if key in ROWS.get() else "",
            )
            for key, mode, url in (
                (branding.LOGO, "light", saved.logo),
                (branding.DARK_LOGO, "dark", saved.dark_logo),
            )
        ]

    def _row(self, text: branding.LocalizedText) -> TextRow:
        fields = [self[setting.key] for setting in text.by_language.values()]
        return TextRow(label=text.label, fields=fields)


def _widget(setting: TextSetting) -> forms.Widget:
    if setting.key == branding.BANNER_KIND.key:
        return forms.Select(choices=list(KIND_LABELS.items()))
    if setting.key == branding.BANNER_UNTIL.key:
        return forms.DateInput(attrs={"type": "date"})
    if setting.max_lines > 1:
        return forms.Textarea(attrs={"rows": setting.max_lines})
    attributes: Mapping[str, Any] = {"maxlength": int(setting.maximum)}
    if placeholder := PLACEHOLDERS.get(setting.key):
        attributes = {**attributes, "placeholder": placeholder}
    return forms.TextInput(attrs=dict(attributes))
