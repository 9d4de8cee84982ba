"""Converts columns to a file's plain values, and back to form input."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import time
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models.secret import (
    EncryptedJSONField,
    EncryptedTextField,
    EncryptedValue,
    UnreadableSecret,
)

SECRET_NOT_IMPORTED = gettext_lazy(
    "Secrets can't be imported from a file. Enter this one in the console."
)
EXPORT_NAMES = {
    "api_key": "has_key",
    "password": "has_password",
    "secret": "has_secret",
    "oauth_client_secret": "has_oauth_client_secret",
}
SECRET_PATTERN = re.compile(r"key|token|secret|password|credential|headers|env", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigColumn:
    """A column under its name in the file."""

    field: Any

    @property
    def name(self) -> str:
        return EXPORT_NAMES.get(self.field.name, self.field.name)

    @property
    def is_secret(self) -> bool:
        return isinstance(self.field, EncryptedTextField)

    @property
    def related_name(self) -> str:
        """The column by which a file names a related row; people have no other name."""
        return "username" if issubclass(self.field.related_model, User) else "name"

    def of(self, row: models.Model) -> Any:
        """Return the file's value: for a secret only whether it is set, or its keys."""
        field = self.field
        if field.many_to_many:
            rows = getattr(row, field.name).all()
            return sorted(getattr(related_row, self.related_name) for related_row in rows)
        value = getattr(row, field.name)
        if isinstance(field, EncryptedJSONField) and isinstance(value, EncryptedValue):
            try:
                return sorted(value.reveal())
            except UnreadableSecret:
                return []  # unknown, so they have to be entered again
        if isinstance(value, EncryptedValue):
            return bool(value)
        if isinstance(value, time):
            return f"{value:%H:%M}"
        if isinstance(value, models.Model):
            return getattr(value, self.related_name)
        return normalize_newlines(value)

    def mismatch(self, value: Any) -> str:
        """Return why a value is invalid here, or an empty string."""
        field = self.field
        if isinstance(field, EncryptedJSONField):
            return "" if _is_name_list(value) else str(SECRET_NOT_IMPORTED)
        if isinstance(field, EncryptedTextField):
            return "" if isinstance(value, bool) else str(SECRET_NOT_IMPORTED)
        if field.many_to_many:
            return "" if _is_name_list(value) else _("Must be a list of names.")
        if (value is None and field.null) or isinstance(field, models.JSONField):
            return ""
        if isinstance(field, models.BooleanField):
            return "" if isinstance(value, bool) else _("Must be true or false.")
        if isinstance(field, models.IntegerField | models.FloatField):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return "" if is_number else _("Must be a number.")
        if isinstance(value, str):
            return ""
        return _("Must be text. Put quotes around values like 12 or true.")

    def differs(self, old: Any, new: Any) -> bool:
        """Whether two values differ; secrets never do, and the order of names is ignored."""
        if self.is_secret:
            return False
        return sorted(old) != sorted(new) if self.field.many_to_many else bool(old != new)

    def form_value(self, value: Any) -> Any:
        """Return the value as a page would submit it; names in it must exist."""
        if self.field.many_to_many:
            return list(self._related_rows(value).values_list("pk", flat=True)) if value else []
        if value is None:
            return ""
        if self.field.is_relation:
            return self._related_rows([value]).values_list("pk", flat=True).first()
        return json.dumps(value) if isinstance(self.field, models.JSONField) else value

    def missing_names(self, value: Any) -> list[str]:
        """Return messages about names that don't exist."""
        if not self.field.is_relation or not value:
            return []
        names = [value] if isinstance(value, str) else value
        existing = set(self._related_rows(names).values_list(self.related_name, flat=True))
        kind = self.field.related_model._meta.verbose_name
        return [not_found_message(kind, name) for name in names if name not in existing]

    def _related_rows(self, names: Collection[str]) -> models.QuerySet[Any]:
        lookup = {f"{self.related_name}__in": names}
        rows = self.field.related_model._default_manager.filter(**lookup)
        return rows.complex_filter(self.field.get_limit_choices_to())


@cache
def editable_columns(
    model: type[models.Model], extra: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> list[ConfigColumn]:
    """Return the editable columns in order, with `extra` ones. The list is shared."""
    fields = [*model._meta.concrete_fields, *model._meta.many_to_many]
    columns = [f for f in fields if f.name in extra or (f.editable and not f.primary_key)]
    return [ConfigColumn(field=field) for field in columns if field.name not in without]


def not_found_message(kind: Any, name: str) -> str:
    return _("There's no %(kind)s named %(name)s.") % {"kind": kind, "name": name}


def unknown_key_message(key: str) -> str:
    """Return why a key is unknown; a secret gets its own message."""
    if SECRET_PATTERN.search(key):
        return str(SECRET_NOT_IMPORTED)
    return _("Unknown setting: %(name)s.") % {"name": key}


def normalize_newlines(value: Any) -> Any:
    """Normalize line ends in all strings."""
    if isinstance(value, str):
        return str(value).replace("\r\n", "\n").replace("\r", "\n")
    if isinstance(value, dict):
        return {name: normalize_newlines(item) for name, item in value.items()}
    return [normalize_newlines(item) for item in value] if isinstance(value, list) else value


def _is_name_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
