"""Badges: a short label with a tone, in sentence case, as the console's lists display them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from agents.models.types import LazyText


def badge(label: LazyText, tone: str = "", title: str = "") -> SafeString:
    """Return a badge; labels of choices are lower case, badges aren't."""
    text = capfirst(str(label))
    if not title:
        return format_html('<span class="badge" data-tone="{}">{}</span>', tone, text)
    parts = (tone, title, text)
    return format_html('<span class="badge" data-tone="{}" title="{}">{}</span>', *parts)


def read_only_text(field: Any) -> str:
    """Return the value of a form's read-only field; the label of a choice in sentence case."""
    text: str = field.contents()
    with suppress(FieldDoesNotExist, TypeError):
        known = field.form.instance._meta.get_field(field.field["field"])
        if getattr(known, "flatchoices", None):
            return SafeString(capfirst(text))  # escaped already
    return text


def badge_column(
    field: str, description: LazyText, tones: Mapping[str, str]
) -> Callable[[Any], SafeString]:
    """Return a list's column that displays a field with choices as badges."""

    @admin.display(description=description, ordering=field)
    def column(row: Any) -> SafeString:
        label = getattr(row, f"get_{field}_display")()
        return badge(label, tones.get(getattr(row, field), ""))

    column.__name__ = f"{field}_badge"
    return column
