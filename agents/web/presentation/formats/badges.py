"""Badges: a short label with a tone, in sentence case, as the console's lists display them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from agents.models.types import LazyText

from .dates import timestamp


def badge(label: LazyText, tone: str = "", title: str = "") -> SafeString:
    """Return a badge; labels of choices are lower case, badges aren't."""
    text = capfirst(str(label))
    if not title:
        return format_html('<span class="badge" data-tone="{}">{}</span>', tone, text)
    html = '<span class="badge" data-tone="{}" title="{}">{}</span>'
    return format_html(html, tone, title, text)


def read_only_text(field: Any) -> str:
    """Return a read-only field's value: choices in sentence case, times as on all pages."""
    text: str = field.contents()
    with suppress(FieldDoesNotExist, TypeError):
        row = field.form.instance
        model_field = row._meta.get_field(field.field["field"])
        if isinstance(model_field, models.DateTimeField):
            return timestamp(getattr(row, model_field.name), "full")
        if getattr(model_field, "flatchoices", None):
            return SafeString(capfirst(text))  # escaped already
    return text


@cache  # Django compares columns by identity
def time_column(model: str, field: str) -> Callable[[Any], SafeString]:
    """Return a list's column that displays a time as all other pages do."""
    description = getattr(apps.get_model(model)._meta.get_field(field), "verbose_name", field)

    @admin.display(description=description, ordering=field)
    def column(row: Any) -> SafeString:
        return timestamp(getattr(row, field))

    column.__name__ = field
    return column


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
