"""Signing in by another service (OpenID Connect); `oidc_client` speaks the protocol.

An account is found by who somebody is to that service, or by an address that it has verified,
never by one that it has not, and never the account of an administrator or a reviewer: whoever
runs the service could otherwise become one. It counts as two factors only where it says so.
"""

import hmac
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
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.access import audit

from . import confusable_names, factors, oidc_client, roles, sessions
from .models import Identity
from .roles import Role

COOKIE, SALT, LASTS = "oidc", "agents.accounts.oidc", 600
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
    kept = {"state": state, "nonce": nonce, "verifier": verifier, "onward": onward}
    more = {"prompt": "login", "max_age": "0"} if is_fresh else {}
    if wanted := _accepted_acr():
        more["acr_values"] = " ".join(wanted)
    with _in_words():
        place = _client(request).authorization_url(
            state=state, nonce=nonce, verifier=verifier, **more
        )
    return place, signing.dumps({**kept, "is_fresh": is_fresh}, salt=SALT)


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
    with _in_words():
        found = _client(request).claims(
            request.GET["code"], nonce=kept.nonce, verifier=kept.verifier
        )
    if kept.is_fresh and not _is_recent(found.get("auth_time")):
        raise NotKnown(
            _("%(service)s didn't ask you to sign in again. Sign out there, then try again.")
            % {"service": name()}
        )
    return found


def _is_recent(moment: Any) -> bool:
    """Not every service says when somebody signed in; where one does, it was just now."""
    return moment is None or (
        isinstance(moment, int | float)
        and time.time() - moment < LASTS + oidc_client.LEEWAY_SECONDS
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
    looks = {confusable_names.skeleton(one) for one in taken.iterator()}
    more = (f"{bare}-{number}" for number in range(2, len(looks) + 3))
    return next(one for one in (bare, *more) if confusable_names.skeleton(one) not in looks)


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
    sessions.ask_again(user.pk)


def _role(groups: set[str]) -> Role:
    environment = settings.ENVIRONMENT
    for role, names in (
        (Role.ADMINISTRATOR, environment.oidc_administrators),
        (Role.REVIEWER, environment.oidc_reviewers),
    ):
        if groups & {part.strip() for part in names.split(",") if part.strip()}:
            return role
    return Role.PERSON


def _client(request: HttpRequest) -> oidc_client.Client:
    environment = settings.ENVIRONMENT
    secret = environment.oidc_client_secret
    return oidc_client.Client(
        issuer=environment.oidc_issuer,
        client_id=environment.oidc_client_id,
        client_secret=None if secret is None else secret.get_secret_value(),
        redirect_uri=_back(request),
    )


@contextmanager
def _in_words() -> Iterator[None]:
    """Turn what went wrong in the protocol into a sentence for the person."""
    service = {"service": name()}
    try:
        yield
    except oidc_client.ProviderUnavailable as error:
        raise NotKnown(_("%(service)s does not answer.") % service) from error
    except oidc_client.ProviderMisconfigured as error:
        raise NotKnown(_("%(service)s is not set up rightly.") % service) from error
    except oidc_client.NonceMismatch as error:
        raise NotKnown(_("This answer is not for this browser. Try again.")) from error
    except oidc_client.TokenRejected as error:
        raise NotKnown(_("What %(service)s says is not to be trusted.") % service) from error


def _back(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("people:oidc_back"))


def _storable(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode()
