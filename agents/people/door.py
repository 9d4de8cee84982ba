"""The way in: what somebody has shown so far, and the session that they are let in with."""

import time
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from agents import audit
from agents.audit import circumstances
from agents.people import factors, throttle, visits
from agents.visitors import PROVED_TWICE

BACKEND = "agents.visitors.Accounts"
HALFWAY, CONFIRMED = "halfway", "confirmed_at"
LASTS = 600  # seconds
MOST_NAME = 150


def wait_for_second(request: HttpRequest, user: Any) -> None:
    """The password was right. Nothing may be done with that but to show more."""
    request.session.cycle_key()
    request.session[HALFWAY] = {"user": user.pk, "at": time.time()}


def halfway(request: HttpRequest) -> Any:
    """Whose password was right a moment ago, in this browser; None for nobody."""
    known = request.session.get(HALFWAY) or {"user": None, "at": 0}
    if time.time() - known["at"] > LASTS:
        return None
    people = get_user_model()._default_manager
    return people.filter(pk=known["user"], is_active=True).first()


def let_in(request: HttpRequest, user: Any, way: str, *, twice: bool) -> None:
    request.session.pop(HALFWAY, None)
    login(request, user, backend=BACKEND)
    request.session[PROVED_TWICE] = twice
    confirm(request)
    visits.begin(request, user, way)
    place = circumstances.address(request)
    throttle.succeeded(user.get_username(), place)
    try:
        audit.record(user, audit.SIGNED_IN, factors.name_of(user), way=way)
    except audit.NotRecorded:
        request.session.flush()  # or they would be in all the same
        raise


def refuse(request: HttpRequest, name: str, way: str) -> None:
    """Keep that somebody did not get in, and whose name they gave."""
    known = get_user_model()._default_manager.filter(username=name).first()
    # What nobody is called may be a password in the wrong field, and is not kept.
    subject = factors.name_of(known) if known else "person:unknown"
    audit.record(None, audit.NOT_SIGNED_IN, subject, way=way)


def confirm(request: HttpRequest) -> None:
    """They have just shown who they are."""
    request.session[CONFIRMED] = time.time()


def is_confirmed(request: HttpRequest) -> bool:
    return time.time() - request.session.get(CONFIRMED, 0) < LASTS


def service() -> str:
    """What the other service is called by which one can sign in; nothing for none."""
    about = settings.ENVIRONMENT
    return about.oidc_name if about.oidc_issuer else ""


def onward(request: HttpRequest, default: str = "chat:new") -> str:
    """Where they wanted to go, if that is one of our pages."""
    wanted = request.POST.get("next", request.GET.get("next", ""))
    is_ours = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours and "\0" not in wanted else reverse(default)
