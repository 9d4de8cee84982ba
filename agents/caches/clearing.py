"""Deletes saved results: of a tool or an agent, or all."""

from django.db import transaction
from django.db.models import F

from agents.models import CacheEntry, CacheGroup


@transaction.atomic
def clear(source: str = "") -> int:
    """Delete the entries of one tool or agent, or all; return how many.

    Results that are being read right now aren't found later either.
    """
    entries = CacheEntry.objects.filter(source=source) if source else CacheEntry.objects.all()
    groups = CacheGroup.objects.filter(entries__in=entries) if source else CacheGroup.objects
    pks = list(groups.values_list("pk", flat=True).distinct())
    CacheGroup.objects.filter(pk__in=pks).update(generation=F("generation") + 1)
    return entries.delete()[0]
