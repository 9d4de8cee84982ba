"""Members of a chat: added by name, or by an invitation link."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.access.names import display_name
from agents.db.installation import configured
from agents.db.sanitize import sanitize_text
from agents.models import OutsideTextTopic
from agents.review.sharing import LIFETIME_HOURS, TOKEN_BYTES, token_digest
from agents.runs import pubsub
from chat.models import ChatSession, Invitation, Member
from chat.sessions import deletion, session_state
from chat.sessions.rights import guests

ACCESS_LEVELS = {"read": gettext_lazy("Can view"), "write": gettext_lazy("Can edit")}


class SharingRejected(Exception):
    """Raised when access isn't granted; the user sees the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersPanel:
    """The members of a chat and what the viewer can change."""

    is_owner: bool
    owner: User
    members: QuerySet[Member]
    invitations: QuerySet[Invitation]
    rights: dict[str, Any]
    lifetimes: list[tuple[int, Any]]


def build_panel(session: ChatSession, user: User) -> MembersPanel:
    is_owner = session.user_id == user.pk
    links = session.invitations.open()
    return MembersPanel(
        is_owner=is_owner,
        owner=session.user,
        members=guests(session).select_related("user__profile"),
        invitations=links if is_owner else links.none(),
        rights=ACCESS_LEVELS,
        lifetimes=list(LIFETIME_HOURS.items()),
    )


def add_member(session: ChatSession, name: str, right: str) -> None:
    """Add a user by name, or change a member's access.

    No link gives them more than that. A link that did is withdrawn, because it was passed on.
    """
    name = sanitize_text(name).strip()
    person = get_user_model().objects.filter(username=name, is_active=True).first()
    if right not in ACCESS_LEVELS:
        raise SharingRejected(_("Choose a permission."))
    if person is None:
        raise SharingRejected(_("No user is named “%(name)s”.") % {"name": name[:150]})
    _check_saved(session)
    if person.pk == session.user_id:
        raise SharingRejected(_("You own this chat, so you're already in it."))
    with _membership_change(session):
        if right == "read":
            _withdraw_used_link(session, person, may_write=True)
            _restrict(session, person, may_read=True)
        else:
            session.removed_members.filter(user=person).delete()
        _admit(session, person, right == "write")
        who = audit.person(person)
        subject = _audit_subject(session)
        audit.record(session.user, audit.MEMBER_ADDED, subject, who=who, right=right)


def _check_saved(session: ChatSession) -> None:
    if session.is_temporary:
        raise SharingRejected(
            _("A temporary chat can't be shared. Choose Keep this chat first.")
        )


def remove_member(session: ChatSession, user: int) -> None:
    """Remove a member; no link lets them back in until the owner adds them by name.

    Raises Member.DoesNotExist if they aren't a member.
    """
    with _membership_change(session):
        member = guests(session).select_related("user").get(user=user)
        _withdraw_used_link(session, member.user)
        _delete_member(session, member, by=session.user)
        _restrict(session, member.user, may_read=False)


def leave(session: ChatSession, user: User) -> None:
    """Leave a chat; raise Member.DoesNotExist for the owner and for non-members."""
    with _membership_change(session):
        _delete_member(
            session, guests(session).select_related("user").get(user=user.pk), by=user
        )


@transaction.atomic
def create_invitation(session: ChatSession, right: str, hours: str) -> str:
    """Create an invitation and return its token, of which only the digest is saved."""
    if right not in ACCESS_LEVELS or hours not in map(str, LIFETIME_HOURS):
        raise SharingRejected(_("Choose a permission and how long the link is valid."))
    _check_saved(session)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    link = session.invitations.create(
        digest=token_digest(token),
        may_write=right == "write",
        expires_at=timezone.now() + timedelta(hours=int(hours)),
    )
    audit.record(
        session.user,
        audit.INVITED,
        _audit_subject(session),
        link=link.pk,
        right=right,
        hours=int(hours),
    )
    return token


@transaction.atomic
def withdraw_invitation(session: ChatSession, pk: int) -> None:
    """Withdraw an invitation; raise Invitation.DoesNotExist if there is none."""
    link = session.invitations.get(pk=pk)
    session.invitations.filter(pk=pk, withdrawn_at=None).update(withdrawn_at=timezone.now())
    audit.record(
        session.user, audit.INVITATION_WITHDRAWN, _audit_subject(session), link=link.pk
    )


def find_invitation(token: str, user: User) -> Invitation:
    """Return the invitation if this user can use it; raise SharingRejected with the reason."""
    links = Invitation.objects.select_related("session__user")
    link = links.filter(digest=token_digest(token)).first()
    if link is None or not link.session.user.is_active or link.session.deleted_at:
        raise SharingRejected(_("This link is invalid or no longer exists."))
    _apply_restriction(link, user)
    if not has_access(user, link):
        _check_open(link)
        _check_not_removed(link.session, user)
    return link


def has_access(user: User, link: Invitation) -> bool:
    """Whether the user already has what the link gives.

    This includes members whose access the owner has reduced since: the same link doesn't
    restore it.
    """
    sessions = ChatSession.objects
    accessible = sessions.writable_by(user) if link.may_write else sessions.for_user(user)
    came_by_it = link.members.filter(user=user.pk)
    return accessible.filter(pk=link.session_id).exists() or came_by_it.exists()


def join(token: str, user: User) -> ChatSession:
    """Add a user with the link's access, their greater one, or their limit."""
    link = find_invitation(token, user)
    session = link.session
    if has_access(user, link):
        return session
    with _membership_change(session):
        _check_open(link)
        _check_not_removed(session, user)
        _apply_restriction(link, user)
        _admit(session, user, link.may_write, link)
        right = "write" if link.may_write else "read"
        who = audit.person(user)
        subject = _audit_subject(session)
        audit.record(user, audit.MEMBER_ADDED, subject, who=who, right=right, link=link.pk)
    return session


def _check_open(link: Invitation) -> None:
    if Invitation.objects.open().filter(pk=link.pk).exists():
        return
    link.refresh_from_db(fields=["withdrawn_at"])  # may have just been withdrawn
    if link.withdrawn_at is not None:
        raise SharingRejected(_("This link was revoked. Ask the sender for a new one."))
    raise SharingRejected(_("This link has expired. Ask the sender for a new one."))


def _check_not_removed(session: ChatSession, user: User) -> None:
    """Reject removed users, who may know other links."""
    if session.removed_members.filter(user=user.pk, may_read=False).exists():
        owner = display_name(session.user)
        sentence = _("You were removed from this chat. Ask %(owner)s to add you by username.")
        raise SharingRejected(sentence % {"owner": owner})


def _restrict(session: ChatSession, person: User, *, may_read: bool) -> None:
    """Save the owner's restriction, which overrides any link."""
    session.removed_members.update_or_create(user=person, defaults={"may_read": may_read})


def _apply_restriction(link: Invitation, user: User) -> None:
    """Make every link read-only for a user whom the owner limited to reading."""
    if link.session.removed_members.filter(user=user.pk).exists():
        link.may_write = False  # in memory only: unchanged for others


@contextmanager
def _membership_change(session: ChatSession) -> Iterator[None]:
    """Lock the members of a chat; then notify its pages, and lists that gain or lose it."""
    with transaction.atomic():
        if not session_state.lock(session):
            raise SharingRejected(_("This chat no longer exists."))
        former = set(guests(session).values_list("user", flat=True))
        yield
        current = set(guests(session).values_list("user", flat=True))
        ChatSession.objects.filter(pk=session.pk).update(is_shared=bool(current))
        if changed := former ^ current:
            announce = partial(deletion.announce, {session.user_id, *changed})
            transaction.on_commit(announce)
        tell = partial(async_to_sync(pubsub.publish), session.topic, "people.changed")
        transaction.on_commit(tell)


def _admit(
    session: ChatSession, person: User, may_write: bool, link: Invitation | None = None
) -> None:
    max_members = configured.CHAT_MEMBERS.value
    if guests(session).exclude(user=person).count() >= max_members:
        raise SharingRejected(
            _("This chat has reached its limit of %(most)d members.") % {"most": max_members}
        )
    if not may_write:
        _clear_queued(session, person)
    _save_member(session, session.user, may_write=True)
    joined_via = {"invitation": link} if link else {}
    _save_member(session, person, may_write=may_write, **joined_via)
    OutsideTextTopic.objects.mark(session.topic)


def _withdraw_used_link(session: ChatSession, person: User, **right: bool) -> None:
    """Withdraw the link this user joined by, if it gives this access."""
    used_links = session.invitations.filter(members__user=person, withdrawn_at=None, **right)
    for link in used_links:
        withdraw_invitation(session, link.pk)


def _save_member(session: ChatSession, person: User, **right: Any) -> None:
    create_defaults = {"topic": session.topic, **right}
    Member.objects.update_or_create(right, create_defaults, session=session, user_id=person.pk)


def _delete_member(session: ChatSession, member: Member, by: User) -> None:
    _clear_queued(session, member.user)
    member.delete()
    audit.record(
        by, audit.MEMBER_REMOVED, _audit_subject(session), who=audit.person(member.user)
    )


def _clear_queued(session: ChatSession, person: User) -> None:
    """Delete the queued messages of a user who lost write access."""
    session.messages.queued().filter(author=person).delete()


def _audit_subject(session: ChatSession) -> str:
    return f"chat:{session.pk}"
