"""Entries in the database: found, saved and counted. Each function is one transaction."""

import json
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.engine.result_cache import CacheMark
from agents.models import CacheEntry, CacheGroup, Run
from agents.models.metering.caches import CacheKind

from . import hits, pruning

logger = logging.getLogger(__name__)

MAX_ENTRY_BYTES = 512_000
MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """What is saved: `user_id` None means that it is the same for everyone."""

    key: str
    kind: CacheKind
    source: str
    value: Any
    lifetime: float
    seconds: float = 0.0
    cost: float = 0.0
    user_id: int | None = None
    run_id: int | None = None
    group: CacheGroup | None = None


def find(key: str, source: str, kind: CacheKind) -> tuple[Any, CacheMark] | None:
    """Return a fresh entry's value and mark, and count the hit or miss."""
    current_time = timezone.now()
    entry = next((entry for entry in _entries(key) if entry.expires_at > current_time), None)
    if entry is None:
        hits.note_miss(source, kind)
        return None
    hits.note_hit(source, entry)
    mark = CacheMark(
        at=entry.saved_at, expires=entry.expires_at, key=key, seconds=entry.seconds
    )
    return entry.value, mark


@compiled_query
def _entries(key: str) -> QuerySet[CacheEntry]:
    return CacheEntry.objects.filter(key=key).order_by()


def save(new: NewEntry) -> bool:
    """Save an entry, in place of an older one; return False if it is too large or too late."""
    size = len(json.dumps(new.value, ensure_ascii=False).encode(errors="replace"))
    if size > MAX_ENTRY_BYTES or new.lifetime <= 0:
        return False
    current_time = timezone.now()
    values: dict[str, Any] = {
        "kind": new.kind,
        "source": new.source,
        "group": new.group,
        "user_id": new.user_id,
        "run_id": new.run_id,
        "value": new.value,
        "size": size,
        "seconds": new.seconds,
        "cost_micros": round(new.cost * MICROS),
        "hits": 0,
        "saved_at": current_time,
        "used_at": current_time,
        "expires_at": current_time + timedelta(seconds=new.lifetime),
    }
    try:
        with transaction.atomic():
            if new.run_id is not None and not Run.objects.filter(pk=new.run_id).exists():
                return False  # deleted meanwhile, and everything of it with it
            CacheEntry.objects.update_or_create(key=new.key, defaults=values)
    except (DatabaseError, ValueError) as error:
        # Its user, run or group was deleted at this moment, or the database can't hold its
        # text. The call itself has succeeded.
        logger.info("Can't save a result of %s: %s", new.source, type(error).__name__)
        return False
    pruning.note_saved()
    return True
