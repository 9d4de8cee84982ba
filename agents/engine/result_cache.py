"""What the loop needs of a cache for tool results and model replies; it has no storage itself.

The capabilities `ResultCache` and `ReplyCache` use it. Equal calls in flight are joined in
`concurrency.joined_calls`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

from .tool import ToolInput, ToolResult

CACHED_NOTE = "cached"  # the note of a step whose result was saved earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMark:
    """What an event says about a cached result; `is_joined`: an equal call was in flight.

    `seconds` is what the original call took, and `usage` what a model's reply had used.
    """

    at: datetime
    expires: datetime | None = None
    key: str = ""
    seconds: float = 0.0
    is_joined: bool = False
    usage: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"at": self.at.isoformat(), "key": self.key[:12]}
        facts |= {"expires": self.expires.isoformat()} if self.expires else {}
        facts |= {"seconds": round(self.seconds, 3)} if self.seconds else {}
        facts |= {"is_joined": True} if self.is_joined else {}
        return facts | ({"saved": dict(self.usage)} if self.usage else {})

    def joined(self) -> "CacheMark":
        return replace(self, is_joined=True, expires=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """A tool's saved result."""

    result: ToolResult
    mark: CacheMark


class ResultStore(Protocol):
    """The saved results of one tool, for one run; `is_read` if its calls change nothing."""

    @property
    def is_read(self) -> bool: ...

    async def key(self, input: ToolInput) -> str:
        """Return the key of a call now, over everything that matters; empty: not cached."""
        ...

    async def find(self, key: str) -> CachedResult | None:
        """Return what is saved under this key and still fresh."""
        ...

    async def save(
        self, key: str, input: ToolInput, result: ToolResult, seconds: float
    ) -> None:
        """Save a result, unless it must not be: errors, cut texts, attachments."""
        ...

    async def evict(self) -> None:
        """Make everything saved from the same place unusable: a call may have changed it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReply:
    """A model's saved reply: its text by kind, and what was decided."""

    reply: Mapping[str, Any]
    mark: CacheMark


class ReplyStore(Protocol):
    """The saved replies of models, for one run."""

    async def key(self, request: Mapping[str, Any]) -> str:
        """Return the key of a request now; empty: not cached."""
        ...

    async def find(self, key: str) -> CachedReply | None: ...

    async def save(
        self, key: str, reply: Mapping[str, Any], usage: Mapping[str, Any], seconds: float
    ) -> None: ...


def digest(value: Any) -> str:
    """Return a hash of JSON data that doesn't depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
