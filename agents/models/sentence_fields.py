"""Columns with sentences of the engine, which a page shows in the reader's language."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, F, Value, When
from django.db.models.functions import Left
from django.db.models.lookups import Exact

from agents.engine.sentences import MARK, pack, unpack

JSON_MARK = "\\u001e"


class SentenceField(models.TextField):
    """A text, or a sentence that remembers its template and parameters."""

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs  # to migrations, just a text

    def get_prep_value(self, value: Any) -> Any:
        return pack(super().get_prep_value(value))

    def from_db_value(self, value: Any, *_context: Any) -> Any:
        return unpack(value) if value and value[0] == MARK else value


def first_chars(column: str, count: int) -> Case:
    """Return so many characters of a column, or the whole sentence."""
    is_sentence = Exact(Left(column, 1), Value(MARK))
    return Case(
        When(is_sentence, then=F(column)),
        default=Left(column, count),
        output_field=SentenceField(),
    )


class SentenceJSONField(models.JSONField):
    """JSON whose texts may be sentences."""

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        return super().get_db_prep_value(pack(value), connection, prepared)

    def from_db_value(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> Any:
        has_sentences = isinstance(value, str) and JSON_MARK in value
        loaded = super().from_db_value(value, expression, connection)
        return unpack(loaded) if has_sentences else loaded
