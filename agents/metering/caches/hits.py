"""Hits and misses, counted in memory and written together: a hit itself writes nothing."""

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F
from django.utils import timezone

from agents.models import CacheEntry, CacheUsage
from agents.models.metering.caches import CacheKind

BATCH = 500


@dataclass(slots=True)
class _Usage:
    kind: CacheKind
    hits: int = 0
    misses: int = 0
    seconds: float = 0.0
    cost_micros: int = 0


@dataclass(slots=True)
class _Pending:
    """What this process has counted since it was last written."""

    usage: dict[str, _Usage] = field(default_factory=dict)
    entries: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    last: datetime | None = None


_lock = threading.Lock()
_pending = _Pending()


def note_hit(source: str, entry: CacheEntry) -> None:
    with _lock:
        used = _pending.usage.setdefault(source, _Usage(CacheKind(entry.kind)))
        used.hits += 1
        used.seconds += entry.seconds
        used.cost_micros += entry.cost_micros
        _pending.entries[entry.pk] += 1
        _pending.last = timezone.now()


def note_miss(source: str, kind: CacheKind) -> None:
    with _lock:
        _pending.usage.setdefault(source, _Usage(kind)).misses += 1


def is_pending() -> bool:
    return bool(_pending.usage)


def flush() -> None:
    """Write what was counted; other processes add theirs.

    In statements by themselves, because other writers wait for the end of each.
    """
    global _pending
    with _lock:
        counted = _pending
        _pending = _Pending()
    if not counted.usage:
        return
    by_count: dict[int, list[int]] = defaultdict(list)
    for pk, count in sorted(counted.entries.items()):
        by_count[count].append(pk)
    for count, pks in by_count.items():
        for start in range(0, len(pks), BATCH):
            entries = CacheEntry.objects.filter(pk__in=pks[start : start + BATCH])
            entries.update(hits=F("hits") + count, used_at=counted.last or timezone.now())
    day = timezone.localdate()
    names = ("hits", "misses", "seconds", "cost_micros")
    for source, used in sorted(counted.usage.items()):
        changes = {name: F(name) + getattr(used, name) for name in names}
        today = CacheUsage.objects.filter(day=day, source=source)
        if not today.update(**changes):
            CacheUsage.objects.get_or_create({"kind": used.kind}, day=day, source=source)
            today.update(**changes)
