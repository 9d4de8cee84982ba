"""What tools read together: a call that may change it makes everything saved from it stale."""

import logging
from datetime import timedelta
from urllib.parse import urlsplit

from django.db import DatabaseError
from django.db.models import F, QuerySet
from django.db.models.signals import post_save
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.db.row_cache import MAX_AGE_SECONDS, RowCache
from agents.models import CacheGroup, ToolRegistration

from .pruning import delete_batches

logger = logging.getLogger(__name__)

KNOWN_AFTER = timedelta(seconds=2 * MAX_AGE_SECONDS)
# The groups that exist at all. Without any, a call that changes something costs no query.
GROUPS: RowCache[frozenset[str]] = RowCache(
    CacheGroup, lambda: frozenset(CacheGroup.objects.values_list("name", flat=True)), frozenset
)


def group_name(row: ToolRegistration) -> str:
    """Return the group of a tool: its MCP server, its host, its database, or itself."""
    if row.server_id is not None:
        return f"server:{row.server_id}"
    if row.connection_id is not None:
        return f"database:{row.connection_id}"
    if row.source == ToolRegistration.Source.HTTP:
        url = urlsplit(row.endpoint.lower())
        return f"http:{url.scheme}://{url.netloc.rpartition('@')[2]}"[:300]
    return f"tool:{row.name}"


def open_group(name: str) -> CacheGroup:
    return next(iter(_groups(name)), None) or CacheGroup.objects.get_or_create(name=name)[0]


@compiled_query
def _groups(name: str) -> QuerySet[CacheGroup]:
    return CacheGroup.objects.filter(name=name).order_by()


def is_known_everywhere(group: CacheGroup) -> bool:
    """Whether every process has heard of the group, so that changes there evict its results."""
    return group.changed_at <= timezone.now() - KNOWN_AFTER


def evict(name: str) -> None:
    """Make everything saved from this place unusable, in all processes at once."""
    try:
        if CacheGroup.objects.filter(name=name).update(generation=F("generation") + 1):
            delete_batches(group__name=name)
    except DatabaseError:
        # The call that evicts goes on; entries end with their lifetime.
        logger.exception("Can't evict the cached results of %s.", name)


def _on_tool_saved(instance: ToolRegistration, **_signal: object) -> None:
    if instance.result_cache:
        open_group(group_name(instance))


def connect() -> None:
    """Announce a tool's group when its cache is switched on."""
    post_save.connect(_on_tool_saved, sender=ToolRegistration)
