"""Temporary links to read a run without an account."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.access.masking import UNMASK_PERMISSION, asker_id
from agents.db import errors
from agents.db.installation import configured
from agents.models import Run
from agents.review.models import ShareLink

Level = ShareLink.Level
TOKEN_BYTES = 32
# In hours.
LIFETIME_HOURS: Mapping[int, Any] = {
    1: gettext_lazy("1 hour"),
    24: gettext_lazy("1 day"),
    7 * 24: gettext_lazy("7 days"),
    30 * 24: gettext_lazy("30 days"),
}


class ShareLinkRejected(Exception):
    """Raised when a link can't be created; the user sees the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePanel:
    """What a user can do about a run's links."""

    levels: list[tuple[str, Any]]
    lifetimes: list[tuple[int, Any]]
    links: QuerySet[ShareLink]


def can_share(run: Run, user: User) -> bool:
    """Whether the user can share it: not if it was only shared with them."""
    is_theirs = Run.objects.in_scope(user).filter(pk=run.pk)
    return configured.PUBLIC_LINKS.value and is_theirs.exists()


def build_panel(run: Run, user: User, *, is_masked: bool) -> SharePanel | None:
    if not can_share(run, user):
        return None
    levels = [(level.value, level.label) for level in Level if _can_create(level, is_masked)]
    return SharePanel(
        levels=levels, lifetimes=list(LIFETIME_HOURS.items()), links=active_links(run, user)
    )


def active_links(run: Run, user: User) -> QuerySet[ShareLink]:
    """Return working links the user can revoke: all for the run's owner."""
    open_links = ShareLink.objects.open().filter(run=run).select_related("made_by")
    is_own = asker_id(run) == user.pk
    return open_links if is_own else open_links.filter(made_by=user)


def create_link(run: Run, user: User, level: str, hours: str, *, is_masked: bool) -> str:
    """Create a link and return its token, of which only the digest is saved."""
    if level not in Level.values or hours not in map(str, LIFETIME_HOURS):
        raise ShareLinkRejected(_("Choose what to share and how long the link works."))
    if not _can_create(Level(level), is_masked):
        raise ShareLinkRejected(_("To share everything, unmask this run first."))
    token = secrets.token_urlsafe(TOKEN_BYTES)
    lifetime = int(hours)
    fields = {"run": run, "level": level, "made_by": user, "digest": token_digest(token)}
    with errors.reraise_as(ShareLinkRejected), transaction.atomic():
        expires_at = timezone.now() + timedelta(hours=lifetime)
        link = ShareLink.objects.create(expires_at=expires_at, **fields)
        audit.record(user, audit.SHARED, run, link=link.pk, level=level, hours=lifetime)
    return token


@transaction.atomic
def revoke(link: ShareLink, user: User) -> None:
    ShareLink.objects.filter(pk=link.pk).update(revoked_at=timezone.now())
    audit.record(user, audit.SHARE_REVOKED, link.run, link=link.pk)


def find_link(token: str) -> ShareLink | None:
    """Return a working link, or None."""
    open_links = ShareLink.objects.open().select_related("run", "made_by")
    link = open_links.filter(digest=token_digest(token)).first()
    if link is None:
        return None
    # Its creator may have lost access to what it shows.
    creator = link.made_by
    if creator is None or not creator.is_active or not can_share(link.run, creator):
        return None
    may_see_it = (
        link.level != Level.AUDITOR
        or asker_id(link.run) == creator.pk
        or creator.has_perm(UNMASK_PERMISSION)
    )
    return link if may_see_it else None


def open_link(token: str, visitor: Any) -> ShareLink | None:
    """Return a working link and record the visit, or None."""
    link = find_link(token)
    if link is None:
        return None
    audit.record_hourly(visitor, audit.SHARE_OPENED, link.run, link=link.pk, level=link.level)
    with errors.reraise_as(audit.NotRecorded):
        ShareLink.objects.filter(pk=link.pk).update(opened=F("opened") + 1)
    return link


def _can_create(level: Level, is_masked: bool) -> bool:
    return level is not Level.AUDITOR or not is_masked


def token_digest(token: str) -> str:
    return sha256(token.encode(errors="replace")).hexdigest()
