"""A model field: configured labels, or a name in LiteLLM's format."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.catalog.language_models import model_setups
from agents.models import LanguageModel


class ModelInput(forms.TextInput):
    """A text input with suggestions: labels with their models, and the demo model."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        list_id = f"{(attrs or {}).get('id', name)}-known"
        html = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        options = format_html_join("", '<option value="{}">{}</option>', suggestions())
        return html + format_html('<datalist id="{}">{}</datalist>', list_id, options)


def suggestions() -> Iterable[tuple[str, str]]:
    rows = LanguageModel.objects.filter(enabled=True).values_list("label", "model")
    return [*rows, (model_setups.DEMO, "")]
