"""A run as it may be kept where nothing personal may be: each event without it.

Nothing comes back. What the run itself knows while it works is another matter.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agents.engine.concurrency.thread import aside
from agents.engine.events import Event, Type
from agents.engine.turn.reasoning import plain

from .masking import Growing, Kind
from .pseudonyms import Discretion

WORDS = {Type.DELTA, Type.THOUGHT_DELTA}
# Names, numbers and times of the run itself, by which it finds its own things again; and
# where they stand. Everything else is as people, models and tools wrote it.
OWN = frozenset(
    {
        *("id", "tool_call_id", "name", "kind", "type", "status", "role", "model", "tool"),
        *("step", "turn", "parent", "started", "ended", "digest", "path", "tools", "usage"),
    }
)
CARRIERS = {"function", "request", "messages", "calls", "tool_calls"}
NONE: frozenset[str] = frozenset()

Events = AsyncGenerator[Event, None]


async def redacted(events: Events) -> Events:
    """The events without personal data; words that are still coming are a little behind."""
    redaction = Redaction()
    async with aclosing(events):
        async for event in events:
            yield await aside(len(repr(event.data)), redaction.event, event)


class Redaction(Discretion):
    """Masks, and so has one alias for all values of a kind."""

    def __init__(self) -> None:
        super().__init__()
        self._growing: dict[tuple[Type, int], Growing] = {}

    def event(self, event: Event) -> Event:
        if event.is_replayed:
            return event  # it was kept as it is
        if event.type in WORDS:
            return replace(event, data={**event.data, "content": self._grown(event)})
        self.find(repr(event.data))  # what a field is called says what is in it
        return replace(event, data=self._fields(event.data, OWN))

    def _alias(self, kind: Kind) -> str:
        return f"‹{kind.value}›"

    def _grown(self, event: Event) -> str:
        place = event.type, event.data["step"]
        growing = self._growing.setdefault(place, Growing(find=self.find))
        return growing.feed(event.data["content"])

    def _fields(self, fields: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
        return {k: v if k in own else self._value(k, v, own) for k, v in fields.items()}

    def _value(self, key: str, value: Any, own: frozenset[str]) -> Any:
        inner = own if key in CARRIERS else NONE
        match value:
            case str():
                return self.hide_json(value) if key == "arguments" else self.hide(value)
            case Mapping():
                return self._fields(value, inner)
            case list() | tuple():
                # What a provider has signed nobody may change, so it cannot be kept.
                items = [plain(item) for item in value] if key == "messages" else value
                return [self._value(key, item, own) for item in items]
            case int() | float() if not isinstance(value, bool):
                return value if (text := self.hide(str(value))) == str(value) else text
        return value
