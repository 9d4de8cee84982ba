"""The form of the installation's settings: one field per setting."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.db.installation.configured import SETTINGS
from agents.db.installation.setting import (
    MICROS,
    SECTIONS_WITH_PAGE,
    Kind,
    Section,
    Setting,
)

NO_LIMIT = _("No limit")
PAGE_SETTINGS = {
    key: setting
    for key, setting in SETTINGS.items()
    if setting.section not in SECTIONS_WITH_PAGE
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """A setting on the page."""

    setting: Setting[Any]
    field: forms.BoundField
    default: str


class SettingsForm(forms.Form):
    """All settings; only what was changed on this page is saved."""

    def __init__(self, *args: Any, may_change: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for setting in PAGE_SETTINGS.values():
            field = form_field(setting)
            field.disabled = setting.is_fixed or not may_change
            field.show_hidden_initial = not field.disabled
            field.initial = to_form(setting, setting.value)
            self.fields[setting.key] = field

    def sections(self) -> Iterator[tuple[Section, list[SettingRow]]]:
        for section in dict.fromkeys(s.section for s in PAGE_SETTINGS.values()):
            yield (
                section,
                [
                    SettingRow(
                        setting=setting,
                        field=self[setting.key],
                        default=setting.display(setting.default),
                    )
                    for setting in PAGE_SETTINGS.values()
                    if setting.section is section
                ],
            )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for key in [name for name in self.changed_data if name in cleaned]:
            setting = PAGE_SETTINGS[key]
            try:
                cleaned[key] = setting.clean(from_form(setting, cleaned[key]))
            except ValidationError as error:
                self.add_error(key, error)
        return cleaned

    def changed_values(self) -> dict[str, Any]:
        """Return the values of the settings that were changed on this page."""
        return {key: self.cleaned_data[key] for key in self.changed_data}


def form_field(setting: Setting[Any]) -> forms.Field:
    options: dict[str, Any] = {"label": setting.label, "help_text": setting.help}
    if setting.kind is Kind.BOOLEAN:
        box = forms.CheckboxInput(attrs={"class": "switch", "role": "switch"})
        return forms.BooleanField(required=False, widget=box, **options)
    if setting.kind is Kind.TEXT:
        line = forms.TextInput(attrs={"maxlength": int(setting.maximum)})
        return forms.CharField(required=False, widget=line, **options)
    hint = {"placeholder": NO_LIMIT} if setting.is_optional else {}
    options |= {"required": not setting.is_optional}
    widget = forms.NumberInput(attrs={"inputmode": "decimal", **hint})
    if setting.kind is Kind.MONEY:
        return forms.DecimalField(
            widget=widget, max_digits=14, decimal_places=2, min_value=0, **options
        )
    if setting.kind is Kind.NUMBER:
        widget.attrs["step"] = "any"
        return forms.FloatField(widget=widget, **options)
    return forms.IntegerField(widget=widget, **options)


def to_form(setting: Setting[Any], value: Any) -> Any:
    """Return a value as the form has it: money in dollars."""
    if value is None or setting.kind is not Kind.MONEY:
        return value
    return (Decimal(value) / MICROS).quantize(Decimal("0.01"))


def from_form(setting: Setting[Any], value: Any) -> Any:
    if value is None or setting.kind is not Kind.MONEY:
        return value
    return round(value * MICROS)
