"""Fetches web pages and sitemaps again when they are due; the first process that looks does it.

A page is only queued here. Its request is conditional, and what hasn't changed isn't indexed
again (`web_pages`, `queue`). The one who set a schedule needs edit access when it is due.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from agents.db import claims
from agents.db.periodic import periodic
from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.models import Collection, Document, Sitemap
from agents.models.knowledge.refetching import SCHEDULE_FIELDS, Refetched, next_fetch
from agents.models.types import AnyUser

from .documents import refresh
from .sitemaps import SitemapUnreadable, add_pages, find_pages

MAX_DUE = 500  # per check
RETRY_AFTER = timedelta(days=1)
NO_RIGHTS = _("Fetching stopped: the user who scheduled it can no longer edit this collection.")
SITEMAP_FAILED = _("The sitemap couldn't be fetched. %(sentence)s")


def set_schedule(target: Document | Sitemap, interval: str, user: User) -> None:
    """Save when a page or a sitemap is fetched again."""
    target.schedule(interval, user, timezone.now())
    if target.fetch_problem == NO_RIGHTS:
        target.fetch_problem = ""
    target.save(update_fields=[*SCHEDULE_FIELDS, "fetch_problem"])


def has_due() -> bool:
    due = _due(timezone.now())
    return any(model._default_manager.filter(due).exists() for model in (Document, Sitemap))


def _due(now: datetime) -> Q:
    return Q(next_fetch_at__lte=now, collection__deleted_at=None)


@periodic("pages", every=60, when=has_due)
def fetch_due(now: datetime | None = None) -> int:
    """Queue pages and read sitemaps that are due; return how many."""
    now = now or timezone.now()
    count = 0
    for document in Document.objects.filter(_due(now)).select_related("scheduled_by")[:MAX_DUE]:
        if _claim(document, now):
            count += refresh(document)
    for sitemap in Sitemap.objects.filter(_due(now)).select_related("scheduled_by")[:MAX_DUE]:
        if _claim(sitemap, now):
            fetch_sitemap(sitemap, sitemap.scheduled_by)
            count += 1
    return count


def _claim(target: Document | Sitemap, now: datetime) -> bool:
    """Set the next time; return False if another process was faster or the user lost access."""
    user = target.scheduled_by
    editable = Collection.objects.editable_by(user) if user else Collection.objects.none()
    if not editable.filter(pk=target.collection_id).exists():
        claims.compare_and_set(
            target,
            "next_fetch_at",
            None,
            fetch_interval=Refetched.Interval.NEVER,
            fetch_problem=NO_RIGHTS,
        )
        return False
    upcoming = next_fetch(target.fetch_interval, now, now)
    if not claims.compare_and_set(target, "next_fetch_at", upcoming):
        return False
    target.next_fetch_at = upcoming
    return True


def fetch_sitemap(sitemap: Sitemap, user: AnyUser | None) -> None:
    """Read a sitemap again for a user: add new pages, and fetch the others if they changed."""
    now = timezone.now()
    try:
        pages = find_pages(sitemap.url, sitemap.max_pages)
    except (SitemapUnreadable, ToolError) as error:
        next_fetch_at = sitemap.next_fetch_at and min(sitemap.next_fetch_at, now + RETRY_AFTER)
        _save(sitemap, now, SITEMAP_FAILED.fill(sentence=error), next_fetch_at=next_fetch_at)
        return
    add_pages(sitemap, user, pages)
    for document in sitemap.documents.filter(collection=sitemap.collection_id):
        refresh(document)
    _save(sitemap, now, "")


def _save(sitemap: Sitemap, now: datetime, problem: str, **values: Any) -> None:
    values |= {"fetched_at": now, "fetch_problem": problem}
    Sitemap.objects.filter(pk=sitemap.pk).update(**values)
    for name, value in values.items():
        setattr(sitemap, name, value)
