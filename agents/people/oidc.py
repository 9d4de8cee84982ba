"""Signing in by another service (OpenID Connect): code flow with state, nonce and PKCE.

An account is found by who somebody is to that service, or by an address that it has verified,
never by one that it has not, and never the account of an administrator or a reviewer: whoever
runs the service could otherwise become one. It counts as two factors only where it says so.
"""

import base64
import hmac
import re
import secrets
import time
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from agents import audit
from agents.people import factors, lookalikes, roles, visits
from agents.people.models import Identity
from agents.people.roles import Role

COOKIE, SALT, LASTS = "oidc", "agents.people.oidc", 600
WITHIN, REMEMBERED, LEEWAY = 10.0, 600, 60  # seconds
SIGNED_BY = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
NEEDED = ["iss", "sub", "aud", "exp", "iat", "nonce"]
MOST_NAME, MOST_SUBJECT = 150, 255
# What is used to sign in there, by what it proves (RFC 8176).
KNOWN = {"pwd", "pin", "kba"}
HAD = {"otp", "hwk", "swk", "pop", "sc", "sms", "tel"}
BEEN = {"face", "fpt", "iris", "retina", "vbm"}


class NotKnown(Exception):
    """Nobody was let in; the text says why, to the person who tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a browser was sent away with, and has to bring back."""

    state: str
    nonce: str
    verifier: str
    onward: str
    is_fresh: bool = False


def begin(request: HttpRequest, onward: str, *, is_fresh: bool = False) -> tuple[str, str]:
    """Where to send the browser, and what to have it keep meanwhile, signed.

    With `is_fresh` the service is to ask who it is, even if it knows.
    """
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    challenge = base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=")
    asked = {
        "response_type": "code",
        "scope": "openid profile email",
        "client_id": settings.ENVIRONMENT.oidc_client_id,
        "redirect_uri": _back(request),
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge.decode(),
        "code_challenge_method": "S256",
    }
    if wanted := _accepted_acr():
        asked["acr_values"] = " ".join(wanted)
    if is_fresh:
        asked |= {"prompt": "login", "max_age": "0"}
    kept = {"state": state, "nonce": nonce, "verifier": verifier, "onward": onward}
    kept["is_fresh"] = is_fresh
    place = _place("authorization_endpoint")
    joint = "&" if "?" in place else "?"
    return f"{place}{joint}{urlencode(asked)}", signing.dumps(kept, salt=SALT)


def keep(response: HttpResponse, kept: str) -> None:
    response.set_cookie(
        COOKIE,
        kept,
        max_age=LASTS,
        path=reverse("people:oidc"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def begun(request: HttpRequest) -> Begun:
    """What this browser was sent away with, if that is what it comes back with."""
    try:
        kept = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=LASTS)
    except signing.BadSignature:
        raise NotKnown(_("That took too long. Try again.")) from None
    if not hmac.compare_digest(kept["state"], _ascii(request.GET.get("state", ""))):
        raise NotKnown(_("This answer is not for this browser. Try again."))
    return Begun(**kept)


def claims(request: HttpRequest, kept: Begun) -> dict[str, Any]:
    """What the service says of whoever has signed in there."""
    if "code" not in request.GET:
        raise NotKnown(_("%(service)s did not let you in.") % {"service": name()})
    told = _exchanged(request, kept)
    found = _read(str(told.get("id_token", "")))
    if not hmac.compare_digest(kept.nonce, _ascii(str(found["nonce"]))):
        raise NotKnown(_("This answer is not for this browser. Try again."))
    if kept.is_fresh and not _is_recent(found.get("auth_time")):
        raise NotKnown(
            _("%(service)s didn't ask you to sign in again. Sign out there, then try again.")
            % {"service": name()}
        )
    return found


def _is_recent(moment: Any) -> bool:
    """Not every service says when somebody signed in; where one does, it was just now."""
    return moment is None or (
        isinstance(moment, int | float) and time.time() - moment < LASTS + LEEWAY
    )


def proves_twice(found: dict[str, Any]) -> bool:
    """Whether the service says that more than one thing showed who it is."""
    if found.get("acr") in _accepted_acr():
        return True
    told = found.get("amr")
    used = {way for way in told if isinstance(way, str)} if isinstance(told, list) else set()
    return "mfa" in used or sum(bool(used & kind) for kind in (KNOWN, HAD, BEEN)) > 1


def _accepted_acr() -> list[str]:
    return [part.strip() for part in settings.ENVIRONMENT.oidc_acr.split(",") if part.strip()]


@transaction.atomic
def person(found: dict[str, Any]) -> Any:
    """Whose account it is: known, found by a verified address, or made."""
    subject = found["sub"]
    is_one = isinstance(subject, str) and subject.strip() and subject == _storable(subject)
    if not is_one or len(subject) > MOST_SUBJECT:
        raise NotKnown(_("What %(service)s says is not to be trusted.") % {"service": name()})
    about = {"issuer": settings.ENVIRONMENT.oidc_issuer, "subject": subject}
    known = Identity.objects.filter(**about).select_related("user").first()
    user = known.user if known else _by_address(found) or _made(found)
    if not user.is_active:
        raise NotKnown(_("This account is switched off."))
    if known is None:
        Identity.objects.create(user=user, **about)
    _give_role(user, found)
    return user


def name() -> str:
    return settings.ENVIRONMENT.oidc_name


def _by_address(found: dict[str, Any]) -> Any:
    address = found.get("email")
    if not isinstance(address, str) or not address or found.get("email_verified") is not True:
        return None
    people = get_user_model()._default_manager.filter(email__iexact=_storable(address))
    found_people = list(people[:2])
    if any(map(_may_more_than_ask, found_people)):
        raise NotKnown(
            _(
                "The account with this email address has elevated permissions, so %(service)s "
                "can't be linked to it automatically. Sign in with your password."
            )
            % {"service": name()}
        )
    return found_people[0] if len(found_people) == 1 else None


def _may_more_than_ask(user: Any) -> bool:
    is_more = user.is_superuser or user.is_staff or roles.of(user) != Role.PERSON
    return is_more or bool(user.get_all_permissions())


def _made(found: dict[str, Any]) -> Any:
    if not settings.ENVIRONMENT.oidc_create:
        raise NotKnown(_("There is no account for you here. Ask an administrator."))
    is_verified = found.get("email_verified") is True
    address = _storable(str(found.get("email") or "")) if is_verified else ""
    people = get_user_model()._default_manager
    user = people.create_user(_free_name(found), email=address[:254])
    user.first_name = _storable(str(found.get("given_name") or ""))[:150]
    user.last_name = _storable(str(found.get("family_name") or ""))[:150]
    user.save()
    roles.give(user, Role.PERSON)
    audit.record(user, audit.PERSON_ADDED, factors.name_of(user), by="oidc")
    return user


def _free_name(found: dict[str, Any]) -> str:
    """What the service calls them, as a name that looks like nobody else's here."""
    told = found.get("preferred_username") or str(found.get("email") or "").split("@")[0]
    plain = unicodedata.normalize("NFKC", _storable(str(told)))
    bare = re.sub(r"[^\w.@+-]", "", plain)[: MOST_NAME - 10] or "person"
    taken = get_user_model()._default_manager.values_list("username", flat=True)
    looks = {lookalikes.skeleton(one) for one in taken.iterator()}
    more = (f"{bare}-{number}" for number in range(2, len(looks) + 3))
    return next(one for one in (bare, *more) if lookalikes.skeleton(one) not in looks)


def _give_role(user: Any, found: dict[str, Any]) -> None:
    """The one that their groups there stand for, where roles are left to the service."""
    environment = settings.ENVIRONMENT
    if not environment.oidc_groups_claim or user.is_superuser:
        return
    told = found.get(environment.oidc_groups_claim)
    groups = set(map(str, told)) if isinstance(told, list) else {str(told)}
    role = _role(groups)
    was = roles.of(user)
    if role == was or (was == Role.ADMINISTRATOR and roles.is_last_administrator(user)):
        return
    roles.give(user, role)
    audit.record(user, audit.RIGHTS_CHANGED, factors.name_of(user), role=role, by="oidc")
    visits.ask_again(user.pk)


def _role(groups: set[str]) -> Role:
    environment = settings.ENVIRONMENT
    for role, names in (
        (Role.ADMINISTRATOR, environment.oidc_administrators),
        (Role.REVIEWER, environment.oidc_reviewers),
    ):
        if groups & {part.strip() for part in names.split(",") if part.strip()}:
            return role
    return Role.PERSON


def _exchanged(request: HttpRequest, kept: Begun) -> dict[str, Any]:
    environment = settings.ENVIRONMENT
    secret, client = environment.oidc_client_secret, environment.oidc_client_id
    asked = {
        "grant_type": "authorization_code",
        "code": request.GET["code"],
        "redirect_uri": _back(request),
        "code_verifier": kept.verifier,
    }
    place = _place("token_endpoint")
    if secret is None:
        return _asked("POST", place, data={**asked, "client_id": client})
    return _asked("POST", place, data=asked, auth=(client, secret.get_secret_value()))


def _read(token: str) -> dict[str, Any]:
    environment = settings.ENVIRONMENT
    try:
        key = _key(jwt.get_unverified_header(token).get("kid"))
        found = jwt.decode(
            token,
            key,
            algorithms=SIGNED_BY,
            audience=environment.oidc_client_id,
            issuer=environment.oidc_issuer,
            leeway=LEEWAY,
            options={"require": NEEDED},
        )
    except jwt.PyJWTError as error:
        raise NotKnown(
            _("What %(service)s says is not to be trusted.") % {"service": name()}
        ) from error
    # A token for several has to say which of them asked for it.
    several = isinstance(found["aud"], list) and len(found["aud"]) > 1
    asker = found.get("azp", None if several else environment.oidc_client_id)
    if asker != environment.oidc_client_id:
        raise NotKnown(_("What %(service)s says is not to be trusted.") % {"service": name()})
    return found


def _key(kid: str | None) -> Any:
    """The key of this name; asked for anew where it is not known, as keys are changed."""
    for is_fresh in (False, True):
        keys = jwt.PyJWKSet.from_dict(_keys(is_fresh)).keys
        fitting = [key for key in keys if kid is None or key.key_id == kid]
        if len(fitting) == 1:
            return fitting[0]
    raise jwt.InvalidKeyError("There is no such key.")


def _keys(is_fresh: bool) -> dict[str, Any]:
    if is_fresh:
        _document.cache_clear()
    return _remembered(_place("jwks_uri"))


def _place(what: str) -> str:
    """Where the service says that this is."""
    issuer = settings.ENVIRONMENT.oidc_issuer
    found = _remembered(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    place = found.get(what)
    if found.get("issuer") != issuer or not isinstance(place, str):
        raise NotKnown(_("%(service)s is not set up rightly.") % {"service": name()})
    return place


def _remembered(place: str) -> dict[str, Any]:
    return _document(place, int(time.time() // REMEMBERED))


@lru_cache(maxsize=8)
def _document(place: str, _when: int) -> dict[str, Any]:
    return _asked("GET", place)


def _asked(method: str, place: str, **about: Any) -> dict[str, Any]:
    try:
        answer = httpx.request(method, place, timeout=WITHIN, **about)
        answer.raise_for_status()
        told = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise NotKnown(_("%(service)s does not answer.") % {"service": name()}) from error
    return told if isinstance(told, dict) else {}


def _back(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("people:oidc_back"))


def _storable(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode()
