"""Removes personal data from a run's events before they are saved.

It can't be restored. The running agent still has the values.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import DELTA_TYPES, Event, EventType
from agents.engine.turn.reasoning import portable_message

from ..sentences import Sentence
from .masking import PiiKind, StreamingMasker
from .pseudonyms import Pseudonymizer

# The run's own names, numbers and times, by field. Everything else was written by people,
# models or tools.
TECHNICAL_FIELDS = frozenset(
    {
        "digest",
        "ended",
        "id",
        "kind",
        "model",
        "name",
        "parent",
        "path",
        "role",
        "started",
        "status",
        "step",
        "tool",
        "tool_call_id",
        "tools",
        "turn",
        "type",
        "usage",
    }
)
CONTAINER_FIELDS = {"function", "request", "messages", "calls", "tool_calls"}
EMPTY_FIELDS: frozenset[str] = frozenset()

Events = AsyncGenerator[Event, None]


async def redact(events: Events) -> Events:
    """Redact the events; streamed text is slightly delayed."""
    redactor = Redactor()
    async with aclosing(events):
        async for event in events:
            yield await run_in_thread_if_large(len(repr(event.data)), redactor.event, event)


class Redactor(Pseudonymizer):
    """Masks values: all values of a kind have the same alias."""

    def __init__(self) -> None:
        super().__init__()
        self._maskers: dict[tuple[EventType, int], StreamingMasker] = {}

    def event(self, event: Event) -> Event:
        if event.is_replayed:
            return event  # was saved as it is
        if event.type in DELTA_TYPES:
            key = event.type, event.data["step"]
            masker = self._maskers.setdefault(key, StreamingMasker(find_spans=self.find))
            content = masker.feed(event.data["content"])
            return replace(event, data={**event.data, "content": content})
        self.find(repr(event.data))  # a field's name can identify its value
        return replace(event, data=self._redact_fields(event.data, TECHNICAL_FIELDS))

    def _new_alias(self, kind: PiiKind) -> str:
        return f"‹{kind.value}›"

    def _redact_fields(
        self, fields: Mapping[str, Any], technical: frozenset[str]
    ) -> dict[str, Any]:
        return {
            key: value if key in technical else self._redact_value(key, value, technical)
            for key, value in fields.items()
        }

    def _redact_value(self, key: str, value: Any, technical: frozenset[str]) -> Any:
        match value:
            case list() if key == "attachments":
                return [{**ref, "name": self.hide(ref.get("name", ""))} for ref in value]
            case Sentence():
                return value.map(self.hide)
            case str():
                return self.hide_json(value) if key == "arguments" else self.hide(value)
            case Mapping():
                is_container = key in CONTAINER_FIELDS
                return self._redact_fields(value, technical if is_container else EMPTY_FIELDS)
            case list() | tuple():
                # Signed provider data can't be changed, so it can't be saved.
                items = (
                    [portable_message(item) for item in value] if key == "messages" else value
                )
                return [self._redact_value(key, item, technical) for item in items]
            case int() | float() if not isinstance(value, bool):
                return value if (text := self.hide(str(value))) == str(value) else text
        return value
