"""Sign-in by another service (OpenID Connect); `oidc_client` implements the protocol.

An account is found by its identity there or by a verified address, never by an unverified one,
and never the account of an administrator or reviewer: an operator of the service could take it
over. It counts as two factors only if the service says so.
"""

import hmac
import logging
import re
import secrets
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.access import audit
from agents.db.installation import configured
from agents.db.sanitize import sanitize_text
from agents.models.catalog.rights import Role

from ..authentication import factors, sessions
from ..models import Identity, Invitation
from ..users import confusable_names, invitations, profiles, roles
from . import (
    oidc_claims,
    oidc_client,
    oidc_cookies,
    oidc_errors,
    provider_logout,
)

logger = logging.getLogger(__name__)

COOKIE_NAME = "oidc"
SALT = "agents.accounts.openid.oidc"
LOGIN_SECONDS = 600
MAX_USERNAME_CHARS = 150
MAX_SUBJECT_CHARS = 255
# Authentication methods by what they prove (RFC 8176).
AMR_KNOWLEDGE = {"pwd", "pin", "kba"}
AMR_POSSESSION = {"otp", "hwk", "swk", "pop", "sc", "sms", "tel"}
AMR_INHERENCE = {"face", "fpt", "iris", "retina", "vbm"}


class OidcError(Exception):
    """Raised when sign-in fails; the user sees the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginState:
    """What a browser is sent away with and must bring back."""

    state: str
    nonce: str
    verifier: str
    onward: str
    is_fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccount:
    """A user as the service knows them, and how to sign out there."""

    claims: dict[str, Any]
    session: provider_logout.ProviderSession


def start_login(
    request: HttpRequest, onward: str, *, is_fresh: bool = False
) -> tuple[str, str]:
    """Return the URL for the browser and the signed state for its cookie.

    With `is_fresh` the service has to authenticate the user again.
    """
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    state_data = {"state": state, "nonce": nonce, "verifier": verifier, "onward": onward}
    parameters = {"prompt": "login", "max_age": "0"} if is_fresh else {}
    if acr_values := _accepted_acr():
        parameters["acr_values"] = " ".join(acr_values)
    with _in_words(request):
        url = _client(request).authorization_url(
            state=state, nonce=nonce, verifier=verifier, **parameters
        )
    return url, signing.dumps({**state_data, "is_fresh": is_fresh}, salt=SALT)


def set_state_cookie(response: HttpResponse, value: str) -> None:
    oidc_cookies.set_cookie(response, COOKIE_NAME, value, LOGIN_SECONDS)


def load_login_state(request: HttpRequest) -> LoginState:
    """Return the login state, if the browser came back with the same one."""
    try:
        data = signing.loads(
            request.COOKIES.get(COOKIE_NAME, ""), salt=SALT, max_age=LOGIN_SECONDS
        )
    except signing.BadSignature:
        raise OidcError(
            _(
                "This sign-in took too long, was already used, or your browser blocks cookies. "
                "Sign in again."
            )
        ) from None
    state = request.GET.get("state", "").encode("ascii", "replace").decode()
    if not hmac.compare_digest(data["state"], state):
        raise OidcError(_("This sign-in was started in a different browser. Try again."))
    return LoginState(**data)


def fetch_account(request: HttpRequest, login_state: LoginState) -> ProviderAccount:
    """Return what the service says about the signed-in user."""
    with _in_words(request):
        _check_redirect(request)
        client = _client(request)
        signed_in = client.sign_in(
            request.GET["code"], nonce=login_state.nonce, verifier=login_state.verifier
        )
        claims = _complete_claims(client, signed_in)
        session = provider_logout.ProviderSession(
            issuer=client.issuer,
            end_session_endpoint=client.optional_endpoint("end_session_endpoint"),
            id_token=signed_in.id_token,
        )
    # Services that don't say when the user signed in are accepted.
    signed_in_at = claims.get("auth_time")
    is_recent = signed_in_at is None or (
        isinstance(signed_in_at, int | float)
        and time.time() - signed_in_at < LOGIN_SECONDS + oidc_client.LEEWAY_SECONDS
    )
    if login_state.is_fresh and not is_recent:
        raise OidcError(
            _("%(service)s didn't ask you to sign in again. Sign out there, then try again.")
            % {"service": provider_name()}
        )
    return ProviderAccount(claims=claims, session=session)


def _check_redirect(request: HttpRequest) -> None:
    """Check that the browser was sent back by our provider, and with a code."""
    issuer = settings.ENVIRONMENT.oidc_issuer
    # Without this check, another provider could pass its response off as ours (RFC 9207).
    if request.GET.get("iss", issuer) != issuer:
        raise oidc_errors.TokenRejected("The redirect names another issuer.")
    if code := request.GET.get("error"):
        raise oidc_errors.from_code(code, request.GET.get("error_description", ""))
    if "code" not in request.GET:
        raise oidc_errors.ProtocolError("The redirect has neither a code nor an error.")


def _complete_claims(
    client: oidc_client.Client, signed_in: oidc_client.SignIn
) -> dict[str, Any]:
    """Return the claims of the ID token, with those that only UserInfo has."""
    missing = oidc_claims.missing(signed_in.claims, client.groups_claim)
    if not missing:
        return signed_in.claims
    try:
        user_info = client.user_info(signed_in)
    except oidc_errors.UserInfoRefused as error:
        # Without their groups, everybody would lose their role.
        if client.groups_claim in missing:
            raise
        logger.warning("Some claims are missing (%s): %s", ", ".join(missing), error)
        return signed_in.claims
    claims = oidc_claims.merge(signed_in.claims, user_info, client.groups_claim)
    if client.groups_claim in oidc_claims.missing(claims, client.groups_claim):
        logger.warning(
            "%s sent no claim %r, neither in the ID token nor in UserInfo. "
            "Check ASHIATO_OIDC_GROUPS_CLAIM and ASHIATO_OIDC_SCOPES.",
            provider_name(),
            client.groups_claim,
        )
    return claims


def is_multi_factor(claims: dict[str, Any]) -> bool:
    """Whether the service says that it used more than one factor."""
    if claims.get("acr") in _accepted_acr():
        return True
    methods = claims.get("amr")
    used = (
        {method for method in methods if isinstance(method, str)}
        if isinstance(methods, list)
        else set()
    )
    return (
        "mfa" in used
        or sum(bool(used & kind) for kind in (AMR_KNOWLEDGE, AMR_POSSESSION, AMR_INHERENCE)) > 1
    )


def _accepted_acr() -> list[str]:
    return [acr.strip() for acr in settings.ENVIRONMENT.oidc_acr.split(",") if acr.strip()]


@transaction.atomic
def get_or_create_user(claims: dict[str, Any], invitation: Invitation | None = None) -> Any:
    """Return the account: known, found by a verified address, or new.

    An invitation gives a new account its role and groups; it isn't used by a known one.
    """
    user_id = claims["sub"]
    is_valid = (
        isinstance(user_id, str) and user_id.strip() and user_id == sanitize_text(user_id)
    )
    if not is_valid or len(user_id) > MAX_SUBJECT_CHARS:
        raise OidcError(
            _("The response from %(service)s couldn't be verified.")
            % {"service": provider_name()}
        )
    columns = {"issuer": settings.ENVIRONMENT.oidc_issuer, "subject": user_id}
    identity = Identity.objects.filter(**columns).select_related("user").first()
    if identity is not None:
        user = identity.user
    else:
        user = _find_by_email(claims) or _create_user(claims, invitation)
    if not user.is_active:
        raise OidcError(_("This account is disabled. Ask an administrator to enable it."))
    _fill_in_profile(user, claims)
    if identity is None:
        Identity.objects.create(user=user, **columns)
    _sync_role(user, claims)
    return user


def provider_name() -> str:
    return settings.ENVIRONMENT.oidc_name


def _find_by_email(claims: dict[str, Any]) -> Any:
    address = _verified_address(claims)
    if not address:
        return None
    people = get_user_model()._default_manager.filter(email__iexact=address)
    matches = list(people[:2])
    for user in matches:
        is_privileged = (
            user.is_superuser
            or user.is_staff
            or roles.get_role(user) != Role.PERSON
            or user.get_all_permissions()
        )
        if is_privileged:
            raise OidcError(
                _(
                    "The account with this email address has elevated permissions, so "
                    "%(service)s can't be linked to it automatically. Sign in with your "
                    "password."
                )
                % {"service": provider_name()}
            )
    return matches[0] if len(matches) == 1 else None


def _create_user(claims: dict[str, Any], invitation: Invitation | None) -> Any:
    if invitation is None and not configured.CREATE_SSO_ACCOUNTS.value:
        raise OidcError(_no_account_message(claims))
    people = get_user_model()._default_manager
    if invitation is not None:
        address = invitation.email
        if address and _verified_address(claims).lower() != address.lower():
            raise OidcError(
                _(
                    "This invitation is for a different address than your account at "
                    "%(service)s. Ask for a new one."
                )
                % {"service": provider_name()}
            )
        invitations.consume(invitation)
        user = people.create_user(_unique_username(claims))
        invitations.apply_terms(user, invitation, by="oidc")
        return user
    user = people.create_user(_unique_username(claims))
    roles.set_role(user, Role.PERSON)
    audit.record(user, audit.PERSON_ADDED, factors.audit_subject(user), by="oidc")
    return user


def _no_account_message(claims: dict[str, Any]) -> str:
    """Return why no account was found: accounts are linked by their verified address."""
    if not claims.get("email"):
        message = _(
            "%(service)s sent no email address, so your account can't be found. Ask an "
            "administrator to check ASHIATO_OIDC_SCOPES and your address there."
        )
    elif claims.get("email_verified") is not True:
        message = _(
            "%(service)s hasn't verified your email address, so it can't be linked to an "
            "account. Verify it there, then sign in again."
        )
    else:
        message = _("You don't have an account here. Ask an administrator to create one.")
    return message % {"service": provider_name()}


def _fill_in_profile(user: User, claims: dict[str, Any]) -> None:
    """Save the service's name and verified address where the account has none."""
    changed = []
    if not (user.first_name or user.last_name):
        given_name = claims.get("given_name")
        family_name = claims.get("family_name")
        full_name = "" if given_name or family_name else claims.get("name")
        user.first_name = sanitize_text(str(given_name or full_name or ""))[:150]
        user.last_name = sanitize_text(str(family_name or ""))[:150]
        changed += ["first_name", "last_name"]
    address = _verified_address(claims)
    if address and not user.email:
        people = get_user_model()._default_manager.exclude(pk=user.pk)
        if not people.filter(email__iexact=address).exists():
            user.email = address
            changed.append("email")
    if changed:
        user.save(update_fields=changed)


def _verified_address(claims: dict[str, Any]) -> str:
    address = claims.get("email")
    is_verified = isinstance(address, str) and claims.get("email_verified") is True
    return sanitize_text(str(address))[:254] if is_verified else ""


def _unique_username(claims: dict[str, Any]) -> str:
    """Return the service's name for the user, made distinct from all others here."""
    local_part = str(claims.get("email") or "").split("@")[0]
    preferred = claims.get("preferred_username") or local_part or claims.get("name") or ""
    plain = unicodedata.normalize("NFKC", sanitize_text(str(preferred)))
    bare = re.sub(r"[^\w.@+-]", "", plain)[: MAX_USERNAME_CHARS - 10] or "person"
    skeletons = profiles.taken_skeletons()
    numbered = (f"{bare}-{number}" for number in range(2, len(skeletons) + 3))
    return next(
        username
        for username in (bare, *numbered)
        if confusable_names.skeleton(username) not in skeletons
    )


def _sync_role(user: User, claims: dict[str, Any]) -> None:
    """Set the role from the user's groups at the service, if it manages roles."""
    environment = settings.ENVIRONMENT
    if not environment.oidc_groups_claim or user.is_superuser:
        return
    groups = oidc_claims.groups(claims, environment.oidc_groups_claim)
    role = Role.PERSON
    if groups & _names(environment.oidc_administrators):
        role = Role.ADMINISTRATOR
    elif groups & _names(environment.oidc_reviewers):
        role = Role.REVIEWER
    previous_role = roles.get_role(user)
    if role == previous_role or (
        previous_role == Role.ADMINISTRATOR and roles.is_last_administrator(user)
    ):
        return
    roles.set_role(user, role)
    audit.record(user, audit.RIGHTS_CHANGED, factors.audit_subject(user), role=role, by="oidc")
    sessions.recheck_access(user.pk)


def _names(text: str) -> set[str]:
    """Return the names in a setting."""
    return {name.strip() for name in text.split(",") if name.strip()}


def _client(request: HttpRequest) -> oidc_client.Client:
    return configured_client(request.build_absolute_uri(reverse("people:oidc_back")))


def configured_client(redirect_uri: str) -> oidc_client.Client:
    environment = settings.ENVIRONMENT
    secret = environment.oidc_client_secret
    return oidc_client.Client(
        issuer=environment.oidc_issuer,
        client_id=environment.oidc_client_id,
        client_secret=None if secret is None else secret.get_secret_value(),
        redirect_uri=redirect_uri,
        scopes=environment.all_oidc_scopes(),
        groups_claim=environment.oidc_groups_claim,
    )


@contextmanager
def _in_words(request: HttpRequest) -> Iterator[None]:
    """Log a protocol error with its cause, and turn it into a message for the user."""
    try:
        yield
    except oidc_errors.ProtocolError as error:
        kind = type(error).__name__
        logger.warning("Sign-in with %s failed (%s): %s", provider_name(), kind, error)
        raise OidcError(error_message(error, _client(request))) from error


def error_message(error: oidc_errors.ProtocolError, client: oidc_client.Client) -> str:
    """Return what a user can read about a failed sign-in."""
    scopes = client.scopes or oidc_client.DEFAULT_SCOPES
    return str(error.message) % {
        "service": provider_name(),
        "redirect_uri": client.redirect_uri,
        "scopes": " ".join(scopes),
    }
