"""Sign-in: factors passed so far, and the resulting session."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme

from agents.access import audit
from agents.access.api_keys import is_service_account
from agents.access.audit import request_context
from agents.access.authentication import MFA_SESSION_KEY
from agents.access.passwords import PasswordsBusy
from agents.access.visitors import is_visitor

from .authentication import factors, sessions, throttle
from .openid import provider_logout

BACKEND = "agents.access.authentication.AccountBackend"
PENDING_USER_KEY = "halfway"
CONFIRMED_AT_KEY = "confirmed_at"
NEXT_URL_KEY = "confirmed_onward"
CONFIRMATION_SECONDS = 600
MAX_USERNAME_CHARS = 150
MAX_PASSWORD_CHARS = 4096

Result = TypeVar("Result")


def check_throttled(
    request: HttpRequest, name: str, method: str, check: Callable[[], Result]
) -> Result:
    """Check a password or code for this name, counting the attempt first.

    Every page that accepts one calls this; raises throttle.TooManyAttempts.
    """
    address = request_context.client_address(request)
    throttle.count_attempt(name, address)
    try:
        result = check()
    except PasswordsBusy:
        throttle.withdraw_attempt(name, address)
        raise
    if result:
        throttle.refund_attempt(name, address)
    else:
        record_failure(request, name, method)
    return result


def verify_password(request: HttpRequest, user: User, typed: str, method: str) -> bool:
    """Check a signed-in user's password; raise throttle.TooManyAttempts."""
    name = user.get_username()
    is_right = check_throttled(
        request, name, method, lambda: user.check_password(typed[:MAX_PASSWORD_CHARS])
    )
    if is_right:
        throttle.record_success(name, request_context.client_address(request))
    return is_right


def require_second_factor(
    request: HttpRequest, user: User, provider_session: dict[str, str] | None = None
) -> None:
    """Remember that the password was right, which only allows the second factor."""
    request.session.cycle_key()
    request.session[PENDING_USER_KEY] = {
        "user": user.pk,
        "at": time.time(),
        "password": user.get_session_auth_hash(),
        "provider_session": provider_session,
    }


def pending_user(request: HttpRequest) -> Any:
    """Return the user whose password was right recently in this browser, or None."""
    pending = request.session.get(PENDING_USER_KEY) or {"user": None, "at": 0}
    if time.time() - pending["at"] > CONFIRMATION_SECONDS:
        return None
    people = get_user_model()._default_manager
    user = people.filter(pk=pending["user"], is_active=True).first()
    # Changing a stolen password must also end a pending sign-in.
    is_same = user is not None and constant_time_compare(
        pending.get("password", ""), user.get_session_auth_hash()
    )
    return user if is_same else None


def complete(
    request: HttpRequest,
    user: User,
    method: str,
    *,
    twice: bool,
    provider_session: dict[str, str] | None = None,
) -> None:
    """Sign in; not with the account of a service or a visitor, whatever it was given."""
    if is_service_account(user) or is_visitor(user.pk):
        raise PermissionDenied
    pending = request.session.pop(PENDING_USER_KEY, None) or {}
    if pending.get("user") == user.pk:
        provider_session = provider_session or pending.get("provider_session")
    login(request, user, backend=BACKEND)
    request.session[MFA_SESSION_KEY] = twice
    if provider_session:
        request.session[provider_logout.SESSION_KEY] = provider_session
    mark_confirmed(request)
    sessions.start(request, user, method)
    throttle.record_success(user.get_username(), request_context.client_address(request))
    try:
        audit.record(user, audit.SIGNED_IN, factors.audit_subject(user), way=method)
    except audit.NotRecorded:
        request.session.flush()  # otherwise they would be signed in anyway
        raise


def record_failure(request: HttpRequest, name: str, method: str) -> None:
    """Record a failed sign-in and the name that was given."""
    user = get_user_model()._default_manager.filter(username=name).first()
    # An unknown name may be a password in the wrong field, so it isn't saved.
    audited = factors.audit_subject(user) if user else "person:unknown"
    audit.record(None, audit.SIGN_IN_FAILED, audited, way=method)


def mark_confirmed(request: HttpRequest) -> None:
    """Note that the user has just confirmed their identity."""
    request.session[CONFIRMED_AT_KEY] = time.time()


def is_confirmed(request: HttpRequest) -> bool:
    return time.time() - request.session.get(CONFIRMED_AT_KEY, 0) < CONFIRMATION_SECONDS


def request_confirmation(request: HttpRequest, onward: str = "") -> str:
    """Return the page to confirm the identity, which leads to `onward`."""
    request.session[NEXT_URL_KEY] = onward or reverse("people:account")
    return reverse("people:confirm")


def url_after_confirmation(request: HttpRequest) -> str:
    return request.session.get(NEXT_URL_KEY) or reverse("people:account")


def sso_name() -> str:
    """Return the name of the sign-in service, or an empty string."""
    environment = settings.ENVIRONMENT
    return environment.oidc_name if environment.oidc_issuer else ""


def next_url(request: HttpRequest, default: str = "chat:new") -> str:
    """Return the requested page, if it is ours."""
    url = request.POST.get("next", request.GET.get("next", ""))
    is_ours = url_has_allowed_host_and_scheme(
        url, {request.get_host()}, require_https=request.is_secure()
    )
    return url if is_ours and "\0" not in url else reverse(default)
