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

from .masking import PiiKind, StreamingMasker
from .pseudonyms import Pseudonymizer

# The run's own names, numbers and times, by field. Everything else was written by people,
# models or tools.
TECHNICAL_FIELDS = frozenset(
    {
        *("id", "tool_call_id", "name", "kind", "type", "status", "role", "model", "tool"),
        *("step", "turn", "parent", "started", "ended", "digest", "path", "tools", "usage"),
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
            return replace(event, data={**event.data, "content": self._redact_delta(event)})
        self.find(repr(event.data))  # a field's name can identify its value
        return replace(event, data=self._redact_fields(event.data, TECHNICAL_FIELDS))

    def _new_alias(self, kind: PiiKind) -> str:
        return f"‹{kind.value}›"

    def _redact_delta(self, event: Event) -> str:
        key = event.type, event.data["step"]
        masker = self._maskers.setdefault(key, StreamingMasker(find_spans=self.find))
        return masker.feed(event.data["content"])

    def _redact_fields(self, fields: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
        return {k: v if k in own else self._redact_value(k, v, own) for k, v in fields.items()}

    def _redact_value(self, key: str, value: Any, own: frozenset[str]) -> Any:
        inner = own if key in CONTAINER_FIELDS else EMPTY_FIELDS
        match value:
            case list() if key == "attachments":
                return [{**ref, "name": self.hide(ref.get("name", ""))} for ref in value]
            case str():
                return self.hide_json(value) if key == "arguments" else self.hide(value)
            case Mapping():
                return self._redact_fields(value, inner)
            case list() | tuple():
                # Signed provider data can't be changed, so it can't be saved.
                items = (
                    [portable_message(item) for item in value] if key == "messages" else value
                )
                return [self._redact_value(key, item, own) for item in items]
            case int() | float() if not isinstance(value, bool):
                return value if (text := self.hide(str(value))) == str(value) else text
        return value
