"""Second factors: authenticator apps, recovery codes and passkeys."""

import base64
import logging
import secrets
from hashlib import sha256

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit
from agents.models.secret import UnreadableSecret

from ..models import Authenticator, Passkey, RecoveryCode
from . import totp

logger = logging.getLogger(__name__)

RECOVERY_CODE_COUNT = 10
RECOVERY_CODE_BYTES = 10


def audit_subject(user: User) -> str:
    """Return the user's subject in the audit log."""
    return audit.person(user).subject


def has_second_factor(user: User) -> bool:
    """Whether a password alone is not enough for this account."""
    authenticators = Authenticator.objects
    passkeys = Passkey.objects
    return authenticators.filter(user=user).exists() or passkeys.filter(user=user).exists()


@transaction.atomic
def add_authenticator(user: User, secret: str, step: int) -> list[str]:
    """Save an authenticator; return recovery codes if there are none yet."""
    Authenticator.objects.filter(user=user).delete()
    Authenticator.objects.create(user=user, secret=secret, last_step=step)
    audit.record(user, audit.MFA_ADDED, audit_subject(user), what="totp")
    return [] if user.recovery_codes.exists() else create_recovery_codes(user)


@transaction.atomic
def remove_authenticator(user: User) -> None:
    if Authenticator.objects.filter(user=user).delete()[0]:
        audit.record(user, audit.MFA_REMOVED, audit_subject(user), what="totp")
        drop_unneeded_codes(user)


@transaction.atomic
def remove_all(user: User, by: User) -> None:
    """Remove all second factors, for a user who lost them."""
    for rows in (Authenticator.objects, Passkey.objects, RecoveryCode.objects):
        rows.filter(user=user).delete()
    audit.record(by, audit.MFA_REMOVED, audit_subject(user), what="all")


@transaction.atomic
def create_recovery_codes(user: User) -> list[str]:
    """Create recovery codes, displayed once; earlier ones become invalid."""
    codes = []
    for _number in range(RECOVERY_CODE_COUNT):
        text = base64.b32encode(secrets.token_bytes(RECOVERY_CODE_BYTES)).decode().lower()
        codes.append("-".join(text[start : start + 4] for start in range(0, len(text), 4)))
    user.recovery_codes.all().delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=_digest(c)) for c in codes)
    audit.record(user, audit.MFA_ADDED, audit_subject(user), what="recovery codes")
    return codes


def drop_unneeded_codes(user: User) -> None:
    """Delete the recovery codes if no second factor is left."""
    if not has_second_factor(user):
        user.recovery_codes.all().delete()


def consume_code(user: User, text: str) -> str:
    """Use up a code and return its kind; empty if it isn't the user's."""
    if _consume_totp(user, text):
        return "totp"
    is_code, _rows = user.recovery_codes.filter(digest=_digest(text)).delete()
    return "recovery" if is_code else ""


def sign_in_methods(user: User) -> list[str]:
    """Return the user's sign-in methods as text."""
    passkeys = user.passkeys.count()
    codes = user.recovery_codes.count()
    methods = [
        (user.has_usable_password(), _("password")),
        (Authenticator.objects.filter(user=user).exists(), _("authenticator app")),
        (passkeys, _("passkeys: %(count)d") % {"count": passkeys}),
        (codes, _("recovery codes: %(count)d") % {"count": codes}),
        (user.identities.exists(), _("single sign-on")),
    ]
    return [label for is_set, label in methods if is_set]


def _consume_totp(user: User, text: str) -> bool:
    authenticator = Authenticator.objects.filter(user=user).first()
    if authenticator is None:
        return False
    try:
        step = totp.matching_step(authenticator.secret.reveal(), text, authenticator.last_step)
    except UnreadableSecret as error:
        logger.warning("Can't read the authenticator secret of user %s: %s", user.pk, error)
        return False
    if not step:
        return False
    # If the same code is used twice at once, only one succeeds.
    unused = Authenticator.objects.filter(pk=authenticator.pk, last_step__lt=step)
    return unused.update(last_step=step, used_at=timezone.now()) == 1


def _digest(text: str) -> str:
    """Return the hash of a recovery code, however its parts are separated."""
    bare = "".join(c for c in text if c.isalnum())
    return sha256(bare.lower().encode(errors="replace")).hexdigest()
