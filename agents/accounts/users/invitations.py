"""Invitations: who can invite to what, and what accepting one creates."""

import logging
import secrets
import smtplib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit
from agents.db.installation import configured
from agents.models.catalog.rights import Role
from agents.web import branding

from ..authentication import factors
from ..models import AccountInvitationQuerySet, Invitation
from . import roles
from .forms import grantable_groups, grantable_roles

logger = logging.getLogger(__name__)

SESSION_KEY = "invitation"
DELETED_AFTER = timedelta(days=30)


class InvitationRejected(Exception):
    """Raised when an invitation can't be created or accepted; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an invitation grants, and for how long."""

    role: Role
    groups: tuple[Group, ...] = ()
    max_uses: int = 1
    days: int = 7


def can_grant(inviter: User | None, role: str, groups: Iterable[Group]) -> bool:
    """Whether a user can grant this role and these groups at this moment."""
    if inviter is None or not inviter.is_active or not inviter.has_perm("auth.add_user"):
        return False
    allowed = set(grantable_groups(inviter).values_list("pk", flat=True))
    return role in grantable_roles(inviter) and {group.pk for group in groups} <= allowed


@transaction.atomic
def create(inviter: User, terms: Terms, email: str = "") -> tuple[Invitation, str]:
    """Create an invitation and return it with its token, which is saved nowhere."""
    if not can_grant(inviter, terms.role, terms.groups):
        raise InvitationRejected(
            _("You can't grant a role or group with more permissions than you have.")
        )
    if email and _has_account(email):
        raise InvitationRejected(_("%(email)s already has an account.") % {"email": email})
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        digest=_digest(token),
        email=email,
        role=terms.role,
        invited_by=inviter,
        max_uses=1 if email else terms.max_uses,
        expires_at=timezone.now() + timedelta(days=terms.days),
    )
    invitation.groups.set(terms.groups)
    names = sorted(group.name for group in terms.groups)
    details = {"role": terms.role, "groups": names, "count": invitation.max_uses}
    audit.record(inviter, audit.PERSON_INVITED, invitation, **details)
    return invitation, token


def find(token: str) -> Invitation | None:
    return Invitation.objects.filter(digest=_digest(token)).first()


def check(invitation: Invitation | None) -> Invitation:
    """Return an invitation that can be accepted; raise InvitationRejected with the reason."""
    if invitation is None:
        raise InvitationRejected(_("This invitation doesn't exist. Check the link."))
    if invitation.state != Invitation.State.OPEN:
        raise InvitationRejected(REASONS[invitation.state]())
    if not can_grant(invitation.invited_by, invitation.role, invitation.groups.all()):
        raise InvitationRejected(REASONS[Invitation.State.REVOKED]())
    return invitation


REASONS = {
    Invitation.State.USED: lambda: _(
        "This invitation was already used. Sign in, or ask for a new one."
    ),
    Invitation.State.EXPIRED: lambda: _("This invitation has expired. Ask for a new one."),
    Invitation.State.REVOKED: lambda: _(
        "This invitation is no longer valid. Ask for a new one."
    ),
}


def consume(invitation: Invitation) -> None:
    """Use it once; of concurrent requests only as many succeed as it has uses."""
    check(invitation)
    rows = Invitation.objects.open().filter(pk=invitation.pk)
    if not rows.update(uses=F("uses") + 1, email=""):
        invitation.refresh_from_db()
        raise InvitationRejected(REASONS[Invitation.State.USED]())


@transaction.atomic
def accept(invitation: Invitation, username: str, **fields: str) -> User:
    """Create the account that the invitation promises."""
    address = invitation.email
    if address and _has_account(address):
        raise InvitationRejected(REASONS[Invitation.State.USED]())
    consume(invitation)
    people = get_user_model()._default_manager
    user = people.create_user(username, email=address, **fields)
    apply_terms(user, invitation, by="invitation")
    return user


def apply_terms(user: User, invitation: Invitation, *, by: str) -> None:
    """Give a new account its role and groups."""
    user.groups.add(*invitation.groups.all())
    roles.set_role(user, Role(invitation.role))
    names = sorted(group.name for group in invitation.groups.all())
    details = {"role": invitation.role, "groups": names}
    audit.record(user, audit.PERSON_ADDED, factors.audit_subject(user), by=by, **details)


def renew(invitation: Invitation, actor: User) -> str:
    """Return a new token with a new term, because the old one is saved nowhere."""
    if not can_grant(actor, invitation.role, invitation.groups.all()):
        raise InvitationRejected(
            _("You can't grant a role or group with more permissions than you have.")
        )
    token = secrets.token_urlsafe(32)
    invitation.digest = _digest(token)
    invitation.invited_by = actor
    invitation.revoked_at = None
    days = timedelta(days=configured.INVITATION_DAYS.value)
    invitation.expires_at = timezone.now() + days
    # Not its uses: it may be accepted at this moment.
    invitation.save(update_fields=["digest", "invited_by", "revoked_at", "expires_at"])
    audit.record(actor, audit.INVITATION_SENT, invitation)
    return token


def revoke(invitations: AccountInvitationQuerySet, actor: Any, *, undo: bool = False) -> int:
    """Revoke invitations, or undo that; return how many."""
    action = audit.INVITATION_RESTORED if undo else audit.INVITATION_REVOKED
    rows = list(invitations.exclude(revoked_at=None) if undo else invitations.open())
    for invitation in rows:
        invitation.revoked_at = None if undo else timezone.now()
        invitation.save(update_fields=["revoked_at"])
        audit.record(actor, action, invitation)
    return len(rows)


def url_of(request: HttpRequest, token: str) -> str:
    return request.build_absolute_uri(reverse("people:invitation", args=[token]))


def send(invitation: Invitation, link: str, inviter: User) -> bool:
    """Send the link to the invited address; return whether the mail server took it."""
    name = inviter.get_full_name() or inviter.get_username()
    installation = branding.current().name
    lines = (
        _("%(name)s invited you to %(installation)s.")
        % {"name": name, "installation": installation},
        _("Open this link to create your account. It works once:"),
        link,
        _("If you didn't expect this, ignore this message."),
    )
    subject = _("Your invitation to %(installation)s") % {"installation": installation}
    try:
        EmailMessage(subject, "\n\n".join(lines), to=[invitation.email]).send()
    except (OSError, smtplib.SMTPException) as error:
        logger.warning("Can't send invitation %s: %s", invitation.pk, error)
        return False
    invitation.sent_at = timezone.now()
    invitation.save(update_fields=["sent_at"])
    return True


def can_send() -> bool:
    """Whether a mail server is configured."""
    return bool(settings.SENDS_EMAIL)


def pending(request: HttpRequest) -> Invitation | None:
    """Return the invitation that this browser opened before it went to single sign-on."""
    digest = request.session.pop(SESSION_KEY, "")
    return Invitation.objects.filter(digest=digest).first() if digest else None


def delete_old() -> None:
    """Delete what expired or was used up a month ago."""
    Invitation.objects.filter(expires_at__lt=timezone.now() - DELETED_AFTER).delete()


def _has_account(email: str) -> bool:
    return get_user_model()._default_manager.filter(email__iexact=email).exists()


def _digest(token: str) -> str:
    return sha256(token.encode(errors="replace")).hexdigest()
