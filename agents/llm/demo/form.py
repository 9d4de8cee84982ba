"""The form that an answer is asked for in, and the conversation before it was asked for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.engine.loop import INSTRUCTIONS
from agents.engine.plans import EVALUATION_SCHEMA, PLAN_SCHEMA

from .history import Message, spoken

_BEFORE_SCHEMA = INSTRUCTIONS.partition("{schema}")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A JSON Schema, and what was said until it was asked for."""

    schema: Mapping[str, Any]
    messages: Sequence[Message]

    @property
    def is_plan(self) -> bool:
        return self._has_fields_of(PLAN_SCHEMA)

    @property
    def is_check(self) -> bool:
        return self._has_fields_of(EVALUATION_SCHEMA)

    def _has_fields_of(self, other: Mapping[str, Any]) -> bool:
        fields = self.schema.get("properties")
        return isinstance(fields, Mapping) and fields.keys() == other["properties"].keys()


def read(messages: Sequence[Message], response_format: Any) -> Form | None:
    """The form in the request itself, or else in the words of its instructions."""
    before, told = _parted(messages)
    given = response_format if isinstance(response_format, Mapping) else {}
    schema = (given.get("json_schema") or {}).get("schema") or _schema(told)
    return Form(schema=schema, messages=before) if isinstance(schema, Mapping) else None


def _parted(messages: Sequence[Message]) -> tuple[Sequence[Message], str]:
    """The conversation without the instructions and what followed them, and the instructions.

    They may stand in one message with what was said last.
    """
    for at in reversed(range(len(messages))):
        words, found, told = spoken(messages[at]).rpartition(_BEFORE_SCHEMA)
        if found and messages[at]["role"] == "user":
            last = [{**messages[at], "content": words.strip()}] if words.strip() else []
            return [*messages[:at], *last], told
    return messages, ""


def _schema(told: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(told)[0]
    except ValueError:
        return None
