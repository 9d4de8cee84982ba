"""Deletes saved results: of a tool or an agent, or all."""

from django.db.models import F

from agents.models import CacheEntry, CacheGroup

from .pruning import delete_batches


def clear(source: str = "") -> int:
    """Delete the entries of one tool or agent, or all; return how many.

    Results that are being read right now aren't found later either.
    """
    conditions = {"source": source} if source else {}
    groups = CacheGroup.objects.all()
    if source:
        grouped = CacheEntry.objects.filter(source=source).exclude(group=None)
        groups = groups.filter(pk__in=grouped.values("group"))
    # First, so that no entry is found while they are deleted.
    groups.update(generation=F("generation") + 1)
    return delete_batches(**conditions)
