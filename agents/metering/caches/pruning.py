"""Keeps the cache within its limits: expired entries go, then those unused for longest."""

import time
from datetime import timedelta

from django.db.models import Count, Sum
from django.utils import timezone

from agents.db import database
from agents.db.installation import configured
from agents.db.periodic import periodic
from agents.models import CacheEntry, CacheUsage

from . import hits

PRUNE_SECONDS = 60.0
MAX_SAVED_BETWEEN = 500
BATCH = 500
KEEP_USAGE_DAYS = 400
MEGABYTE = 1_000_000

_state = {"pruned_at": 0.0, "saved": 0}


def note_saved() -> None:
    """Count a new entry; many of them don't wait for the next periodic check."""
    _state["saved"] += 1
    if _state["saved"] >= MAX_SAVED_BETWEEN:
        prune()


@periodic("cache hits", every=5)
async def flush_hits() -> None:
    """Write what was counted."""
    if hits.is_pending():
        await database.run(hits.flush)


@periodic("caches", every=PRUNE_SECONDS)
async def prune_regularly() -> None:
    await database.run(prune)


def prune() -> int:
    """Delete what has expired and what exceeds the limits; return how much."""
    hits.flush()
    _state.update(pruned_at=time.monotonic(), saved=0)
    removed = delete_batches(expires_at__lte=timezone.now())
    totals = CacheEntry.objects.aggregate(rows=Count("pk"), bytes=Sum("size"))
    excess_rows = totals["rows"] - configured.CACHE_ENTRIES.value
    excess_bytes = (totals["bytes"] or 0) - configured.CACHE_MB.value * MEGABYTE
    while excess_rows > 0 or excess_bytes > 0:
        oldest = list(
            CacheEntry.objects.order_by("used_at", "pk").values_list("pk", "size")[:BATCH]
        )
        if not oldest:
            break
        evicted = list[int]()
        for pk, size in oldest:
            if excess_rows <= 0 and excess_bytes <= 0:
                break
            evicted.append(pk)
            excess_rows -= 1
            excess_bytes -= size
        removed += CacheEntry.objects.filter(pk__in=evicted).delete()[0]
    since = timezone.localdate() - timedelta(days=KEEP_USAGE_DAYS)
    CacheUsage.objects.filter(day__lt=since).delete()
    return removed


def delete_batches(**filters: object) -> int:
    """Delete in batches, so that writers never wait long."""
    removed = 0
    while True:
        rows = CacheEntry.objects.filter(**filters).order_by()
        pks = list(rows.values_list("pk", flat=True)[:BATCH])
        if pks:
            removed += CacheEntry.objects.filter(pk__in=pks).delete()[0]
        if len(pks) < BATCH:
            return removed
