"""Links by which a run can be read without an account, for a while."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.access.masking import UNMASK_PERMISSION, asker_id
from agents.db import errors
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
    """A link was not made; the text says why, to the person who asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePanel:
    """What somebody can do about the links of a run."""

    levels: list[tuple[str, Any]]
    lifetimes: list[tuple[int, Any]]
    links: QuerySet[ShareLink]


def can_share(run: Run, user: Any) -> bool:
    """Not where it was only shown to them: whose conversation it is says who else sees it."""
    return Run.objects.in_scope(user).filter(pk=run.pk).exists()


def build_panel(run: Run, user: Any, *, is_masked: bool) -> SharePanel | None:
    if not can_share(run, user):
        return None
    levels = [(level.value, level.label) for level in Level if _can_create(level, is_masked)]
    return SharePanel(
        levels=levels, lifetimes=list(LIFETIME_HOURS.items()), links=active_links(run, user)
    )


def active_links(run: Run, user: Any) -> QuerySet[ShareLink]:
    """Those that still work, for whoever may end them: all for whose run it is."""
    working = ShareLink.objects.open().filter(run=run).select_related("made_by")
    is_own = asker_id(run) == user.pk
    return working if is_own else working.filter(made_by=user)


def create_link(run: Run, user: Any, level: str, hours: str, *, is_masked: bool) -> str:
    """A link's token, which is told this once: only its digest is kept."""
    if level not in Level.values or hours not in map(str, LIFETIME_HOURS):
        raise ShareLinkRejected(_("Choose what to share and how long the link works."))
    if not _can_create(Level(level), is_masked):
        raise ShareLinkRejected(_("To share everything, unmask this run first."))
    token, lasts = secrets.token_urlsafe(TOKEN_BYTES), int(hours)
    made = {"run": run, "level": level, "made_by": user, "digest": token_digest(token)}
    with errors.reraise_as(ShareLinkRejected), transaction.atomic():
        ends = timezone.now() + timedelta(hours=lasts)
        link = ShareLink.objects.create(expires_at=ends, **made)
        audit.record(user, audit.SHARED, run, link=link.pk, level=level, hours=lasts)
    return token


@transaction.atomic
def revoke(link: ShareLink, user: Any) -> None:
    ShareLink.objects.filter(pk=link.pk).update(revoked_at=timezone.now())
    audit.record(user, audit.SHARE_REVOKED, link.run, link=link.pk)


def open_link(token: str, visitor: Any) -> ShareLink | None:
    """The link of this token, counted and kept as opened; None if it does not work."""
    working = ShareLink.objects.open().select_related("run", "made_by")
    link = working.filter(digest=token_digest(token)).first()
    if link is None or not _is_still_allowed(link):
        return None
    audit.record_hourly(visitor, audit.SHARE_OPENED, link.run, link=link.pk, level=link.level)
    with errors.reraise_as(audit.NotRecorded):
        ShareLink.objects.filter(pk=link.pk).update(opened=F("opened") + 1)
    return link


def _can_create(level: Level, is_masked: bool) -> bool:
    return level is not Level.AUDITOR or not is_masked


def _is_still_allowed(link: ShareLink) -> bool:
    """A link shows no more than whoever made it may see by now."""
    user, run = link.made_by, link.run
    if user is None or not user.is_active:
        return False
    if not can_share(run, user):
        return False
    return (
        link.level != Level.AUDITOR
        or asker_id(run) == user.pk
        or user.has_perm(UNMASK_PERMISSION)
    )


def token_digest(token: str) -> str:
    return sha256(token.encode(errors="replace")).hexdigest()
