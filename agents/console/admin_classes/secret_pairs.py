"""A form field for named secrets: a row for each name, whose saved value is never displayed."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.models.secret import EncryptedValue, UnreadableSecret
from agents.models.types import LazyText

NAME_MISSING = _("Enter a name for each value.")
VALUE_MISSING = _("Enter a value for %(names)s.")
NAME_TWICE = _("%(name)s is entered twice. Remove one.")

Pairs = list[tuple[str, str]]
Typed = Mapping[str, str | None]


class SecretPairs(forms.Widget):
    """Rows of names and values; one row is empty, for the next."""

    template_name = "admin/agents/_secret_pairs.html"
    use_fieldset = True
    add_label: LazyText = ""
    saved_names: tuple[str, ...] = ()

    def _render(self, template_name: str, context: Any, renderer: Any = None) -> SafeString:
        return render_to_string(template_name, context)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        names = [key for key, _value in value] if value else list(self.saved_names)
        context = super().get_context(name, None, attrs)
        rows = [(key, key in self.saved_names) for key in names if key]
        return {**context, "rows": [*rows, ("", False)], "add_label": self.add_label}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Pairs | None:
        """Return the rows; None if the page has no such field, which changes nothing."""
        if f"{name}-name" not in data:
            return None
        names = [text.strip() for text in data.getlist(f"{name}-name")]
        return list(zip(names, data.getlist(f"{name}-value"), strict=False))

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-name" not in data


class SecretPairsField(forms.Field):
    """Values by name; a saved name without a value keeps what is saved, as None."""

    widget = SecretPairs

    def __init__(self, *, add_label: LazyText, **options: Any) -> None:
        super().__init__(**{"required": False, **options})
        self.widget.add_label = add_label

    def show_saved(self, secret: EncryptedValue) -> None:
        """Display the names of saved values; none if they can't be decrypted any more."""
        try:
            self.widget.saved_names = tuple(secret.reveal())
        except UnreadableSecret:
            self.widget.saved_names = ()

    def clean(self, value: Pairs | None) -> Typed | None:
        if value is None:
            return None
        pairs: dict[str, str | None] = {}
        for name, text in value:
            if not name and not text:
                continue
            if not name:
                raise forms.ValidationError(NAME_MISSING)
            if name in pairs:
                raise forms.ValidationError(NAME_TWICE, params={"name": name})
            pairs[name] = text or None
        unknown = [n for n in pairs if not pairs[n] and n not in self.widget.saved_names]
        if unknown:
            raise forms.ValidationError(VALUE_MISSING, params={"names": ", ".join(unknown)})
        return pairs

    def has_changed(self, initial: Any, data: Pairs | None) -> bool:
        if data is None:
            return False
        names = [name for name, text in data if name or text]
        return any(text for _name, text in data) or names != list(self.widget.saved_names)


def merge_pairs(typed: Typed | None, secret: EncryptedValue) -> tuple[Any, bool]:
    """Return the values as they will be, and whether some of them are saved ones.

    None leaves the secret as it is.
    """
    if typed is None or (not typed and not secret):
        return None, False
    try:
        saved = secret.reveal()
    except UnreadableSecret:
        # Without a new value, its own error is displayed.
        return typed or None, False
    kept = {name for name, value in typed.items() if value is None}
    if kept and len(kept) == len(typed) == len(saved):
        return None, False
    values = {name: saved[name] if name in kept else text for name, text in typed.items()}
    return values, bool(kept)
