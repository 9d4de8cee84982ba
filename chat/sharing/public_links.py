"""Temporary links to read a copy of a chat without an account."""

import secrets
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit
from agents.db import errors
from agents.db.installation import configured
from agents.review.sharing import LIFETIME_HOURS, TOKEN_BYTES, token_digest
from chat.models import ChatSession, PublicLink
from chat.sessions import deletion, session_state

from . import snapshots

DEFAULT_HOURS = 30 * 24

Level = PublicLink.Level


class PublicLinkRejected(Exception):
    """Raised when a link can't be created; the user sees the reason."""


def is_enabled() -> bool:
    """Whether this installation allows public links."""
    return configured.PUBLIC_LINKS.value


def active_links(chat: ChatSession) -> QuerySet[PublicLink]:
    return chat.public_links.open().defer("snapshot")


def links_of(user: User) -> QuerySet[PublicLink]:
    """Return all working links to a user's chats."""
    links = PublicLink.objects.open().filter(session__user=user, session__deleted_at=None)
    return links.select_related("session").defer("snapshot")


def create(chat: ChatSession, user: User, level: str, hours: str) -> str:
    """Publish a copy of the chat and return the token, of which only the digest is saved."""
    if not is_enabled():
        raise PublicLinkRejected(_("Public links are disabled on this server."))
    if level not in Level.values or hours not in map(str, LIFETIME_HOURS):
        raise PublicLinkRejected(_("Choose what to share and how long the link works."))
    if chat.is_temporary:
        raise PublicLinkRejected(_("A temporary chat isn't saved, so it can't be published."))
    snapshot = _build_snapshot(chat, level, user)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    published_at = timezone.now()
    with errors.reraise_as(PublicLinkRejected), transaction.atomic():
        if not session_state.lock(chat):  # links of two tabs are counted one by one
            raise PublicLinkRejected(_("This chat no longer exists."))
        if active_links(chat).count() >= configured.CHAT_LINKS.value:
            raise PublicLinkRejected(
                _("This chat already has %(most)d public links. Revoke one first.")
                % {"most": configured.CHAT_LINKS.value}
            )
        link = chat.public_links.create(
            made_by=user,
            digest=token_digest(token),
            level=level,
            snapshot=snapshot,
            updated_at=published_at,
            expires_at=published_at + timedelta(hours=int(hours)),
        )
        _mark(chat)
        audit.record(
            user,
            audit.PUBLISHED,
            _audit_subject(chat),
            link=link.pk,
            level=level,
            hours=int(hours),
        )
    return token


def update(link: PublicLink, user: User) -> None:
    """Replace the copy with the chat as it is now; the URL stays the same."""
    snapshot = _build_snapshot(link.session, link.level, user)
    with errors.reraise_as(PublicLinkRejected), transaction.atomic():
        links = PublicLink.objects.open().filter(pk=link.pk)
        if not links.update(snapshot=snapshot, updated_at=timezone.now()):
            raise PublicLinkRejected(_("This link has expired. Create a new one."))
        audit.record(user, audit.REPUBLISHED, _audit_subject(link.session), link=link.pk)


@transaction.atomic
def revoke(link: PublicLink, user: User) -> None:
    """Delete the link and its copy."""
    PublicLink.objects.filter(pk=link.pk).delete()
    _mark(link.session)
    audit.record(user, audit.UNPUBLISHED, _audit_subject(link.session), link=link.pk)


def find(token: str) -> PublicLink | None:
    """Return a working link, or None."""
    if not is_enabled():
        return None
    working = PublicLink.objects.open().filter(session__deleted_at=None)
    working = working.select_related("session", "made_by")
    link = working.filter(digest=token_digest(token)).first()
    is_allowed = (
        link is not None and link.made_by.is_active and link.session.user_id == link.made_by_id
    )
    return link if is_allowed else None


def record_visit(link: PublicLink, visitor: Any) -> None:
    chat = _audit_subject(link.session)
    audit.record_hourly(visitor, audit.PUBLIC_OPENED, chat, link=link.pk)
    with errors.reraise_as(audit.NotRecorded):
        PublicLink.objects.filter(pk=link.pk).update(opened=F("opened") + 1)


def delete_expired() -> int:
    """Delete links that no longer work, with their copies; return how many."""
    return PublicLink.objects.filter(expires_at__lte=timezone.now()).delete()[0]


def _build_snapshot(chat: ChatSession, level: str, user: User) -> dict[str, Any]:
    try:
        snapshot = snapshots.build(chat, level, user)
    except snapshots.SnapshotTooLarge:
        raise PublicLinkRejected(
            _("This chat is too long for a public link. Choose less detail or export it.")
        ) from None
    if not snapshot["messages"]:
        raise PublicLinkRejected(_("This chat has no answers to share yet."))
    return snapshot


def _mark(chat: ChatSession) -> None:
    """Save until when the chat is public, for the mark in lists."""
    last = chat.public_links.open().aggregate(last=Max("expires_at"))["last"]
    ChatSession.objects.filter(pk=chat.pk).update(public_until=last)
    chat.public_until = last
    transaction.on_commit(partial(deletion.announce, [chat.user_id]))


def _audit_subject(chat: ChatSession) -> str:
    return f"chat:{chat.pk}"
