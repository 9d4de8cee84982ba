"""Spans of a run, before they are exported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from hashlib import sha256
from typing import Any

AttributeValue = str | bool | int | float | Sequence[str]
ContentFilter = Callable[[Any], Any]  # masks what a sink must not have


class TraceSpanKind(IntEnum):
    INTERNAL = 1
    CLIENT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """An event within a span."""

    name: str
    time: datetime
    attributes: Mapping[str, AttributeValue]


@dataclass(slots=True, kw_only=True)
class TraceSpan:
    trace: bytes
    id: bytes
    name: str
    began: datetime
    kind: TraceSpanKind = TraceSpanKind.INTERNAL
    parent: bytes = b""
    ended: datetime | None = None
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    failure: str | None = None  # error message, None without an error


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceIdentity:
    """The run that spans belong to."""

    number: int
    topic: str
    began: datetime

    @property
    def trace(self) -> bytes:
        return self._digest("")[:16]

    def span(self, key: str) -> bytes:
        return self._digest(key)[:8]

    def _digest(self, key: str) -> bytes:
        moment = round(self.began.timestamp() * 1_000_000)
        return sha256(f"ashiato:{self.number}:{moment}:{key}".encode()).digest()
