"""The cache of models' replies in one run: exact keys over the whole request."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.db import database
from agents.engine.result_cache import CachedReply, digest
from agents.models.metering.caches import CacheKind

from . import rights, storage

KEY_VERSION = 1  # another meaning of a key or value is another version
SAVED_USAGE = ("prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStore:
    """Finds and saves replies of an agent's models; a public agent's are for everyone."""

    agent: int
    version: str
    is_public: bool
    lifetime: float
    user_id: int | None
    run_id: int | None

    @property
    def source(self) -> str:
        return f"agent:{self.agent}"

    async def key(self, request: Mapping[str, Any]) -> str:
        scope = "public"
        if not self.is_public:
            scope = await database.run(rights.fingerprint, self.user_id)
        if not scope:
            return ""
        return digest([KEY_VERSION, "model", self.agent, self.version, scope, dict(request)])

    async def find(self, key: str) -> CachedReply | None:
        entry = await database.run(storage.find, key, self.source, CacheKind.MODEL)
        if entry is None:
            return None
        value, mark = entry
        return CachedReply(reply=value["reply"], mark=replace(mark, usage=value["usage"]))

    async def save(
        self, key: str, reply: Mapping[str, Any], usage: Mapping[str, Any], seconds: float
    ) -> None:
        saved_usage = {name: usage.get(name) for name in SAVED_USAGE}
        new = storage.NewEntry(
            key=key,
            kind=CacheKind.MODEL,
            source=self.source,
            value={"reply": dict(reply), "usage": saved_usage},
            lifetime=self.lifetime,
            seconds=seconds,
            cost=saved_usage["cost"] or 0.0,
            user_id=None if self.is_public else self.user_id,
            run_id=self.run_id,
        )
        await database.run(storage.save, new)
