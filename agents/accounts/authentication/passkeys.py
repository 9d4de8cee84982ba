"""Passkeys (WebAuthn): options for the browser, and verification."""

import logging
import time
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialDescriptor,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
    PublicKeyCredentialUserEntity,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from agents.access import audit
from agents.web import branding

from ..models import Passkey
from . import factors

logger = logging.getLogger(__name__)

CHALLENGE_KEY = "passkey_asked"
CHALLENGE_SECONDS = 300  # seconds
MAX_PASSKEYS = 20
MAX_KEY_ID_CHARS = 1400
MAX_NAME_CHARS = 60


class PasskeyRejected(Exception):
    """Raised when a passkey is rejected; the user sees the message."""


def registration_options(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return the browser's options to create a passkey."""
    descriptors = [_descriptor(key) for key in user.passkeys.all()]
    if len(descriptors) >= MAX_PASSKEYS:
        raise PasskeyRejected(
            _("You already have %(most)d passkeys, the maximum. Remove one first.")
            % {"most": MAX_PASSKEYS}
        )
    name = user.get_username()
    options, state = _server(request).register_begin(
        PublicKeyCredentialUserEntity(
            id=str(user.pk).encode(), name=name, display_name=user.get_full_name() or name
        ),
        descriptors,
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    return _save_challenge(request, options, state, "make")


def register(
    request: HttpRequest, user: User, response: Mapping[str, Any], name: str
) -> Passkey:
    """Save the passkey the browser created."""
    state = _pop_challenge(request, "make")
    data = _verify(lambda: _server(request).register_complete(state, response))
    credential = data.credential_data
    key_id = websafe_encode(data.credential_data.credential_id)
    if len(key_id) > MAX_KEY_ID_CHARS:
        raise PasskeyRejected(_("The passkey wasn't accepted. Try again."))
    name = name.strip()[:MAX_NAME_CHARS] or _("Passkey")
    values = {"public_key": websafe_encode(bytes(credential)), "uses": data.counter}
    try:
        with transaction.atomic():
            key = Passkey.objects.create(user=user, name=name, key_id=key_id, **values)
            audit.record(user, audit.MFA_ADDED, factors.audit_subject(user), what="passkey")
    except IntegrityError:
        raise PasskeyRejected(_("This passkey is already registered.")) from None
    return key


def authentication_options(request: HttpRequest, user: User | None = None) -> dict[str, Any]:
    """Return the browser's options to use a passkey, of this user or any.

    If it is the only factor, it must verify the user.
    """
    descriptors = [_descriptor(key) for key in user.passkeys.all()] if user else None
    requirement = UserVerificationRequirement
    options, state = _server(request).authenticate_begin(
        descriptors, user_verification=requirement.PREFERRED if user else requirement.REQUIRED
    )
    return _save_challenge(request, options, state, _authentication_purpose(user))


def verify_assertion(
    request: HttpRequest, answer: Mapping[str, Any], user: User | None = None
) -> Any:
    """Verify an assertion and return its user, which must be `user` if given."""
    state = _pop_challenge(request, _authentication_purpose(user))
    response = _verify(lambda: AuthenticationResponse.from_dict(answer))
    is_owner = Q(user=user.pk) if user else Q()
    key_id = websafe_encode(response.raw_id)[:MAX_KEY_ID_CHARS]
    keys = Passkey.objects.filter(is_owner, user__is_active=True, key_id=key_id)
    key = keys.select_related("user").first()
    if key is None:
        raise PasskeyRejected(
            _("This passkey isn't registered here. Try another passkey or sign-in method.")
        )
    _verify(
        lambda: _server(request).authenticate_complete(
            state, [AttestedCredentialData(websafe_decode(key.public_key))], response
        )
    )
    _update_sign_count(key, response.response.authenticator_data.counter)
    return key.user


def _authentication_purpose(user: User | None) -> str:
    """Return the purpose: challenges for a known user are weaker, so they can't be reused."""
    return f"show {user.pk}" if user else "show"


@transaction.atomic
def remove(user: User, pk: int) -> bool:
    is_gone = user.passkeys.filter(pk=pk).delete()[0] > 0
    if is_gone:
        audit.record(user, audit.MFA_REMOVED, factors.audit_subject(user), what="passkey")
        factors.drop_unneeded_codes(user)
    return is_gone


def _update_sign_count(key: Passkey, uses: int) -> None:
    """Update the counter; a lower one means a copy, and of two at once one is accepted."""
    same = Passkey.objects.filter(pk=key.pk)
    fresh = same.filter(uses__lt=uses) if uses else same.filter(uses=0)
    if not fresh.update(uses=uses, used_at=timezone.now()):
        logger.warning(
            "Passkey %s sent an old signature counter. It may have been cloned.", key.pk
        )
        raise PasskeyRejected(_("The passkey wasn't accepted. Try again."))


def _server(request: HttpRequest) -> Fido2Server:
    host = request.get_host().rsplit(":", 1)[0]
    rp = PublicKeyCredentialRpEntity(name=branding.current().name, id=host)
    return Fido2Server(rp, verify_origin=lambda origin: origin in settings.ORIGINS)


def _descriptor(key: Passkey) -> PublicKeyCredentialDescriptor:
    kind = PublicKeyCredentialType.PUBLIC_KEY
    return PublicKeyCredentialDescriptor(type=kind, id=websafe_decode(key.key_id))


def _save_challenge(
    request: HttpRequest, options: Any, state: Any, purpose: str
) -> dict[str, Any]:
    request.session[CHALLENGE_KEY] = {"what": purpose, "state": state, "at": time.time()}
    return dict(options)


def _pop_challenge(request: HttpRequest, purpose: str) -> Any:
    """Return this browser's recent challenge, for a single use."""
    challenge = request.session.pop(CHALLENGE_KEY, None)
    if (
        not challenge
        or challenge["what"] != purpose
        or time.time() - challenge["at"] > CHALLENGE_SECONDS
    ):
        raise PasskeyRejected(_("The request timed out. Try again."))
    return challenge["state"]


def _verify(verify: Any) -> Any:
    """Verify browser data, which can be anything and fails in many ways."""
    try:
        return verify()
    except Exception as error:
        logger.info("A passkey was rejected: %r", error)
        raise PasskeyRejected(_("The passkey wasn't accepted. Try again.")) from error
