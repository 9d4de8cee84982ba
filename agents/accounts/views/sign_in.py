"""Sign-in pages."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth import authenticate, get_user_model, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode, urlsafe_base64_decode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import audit, authentication
from agents.access.audit import request_context
from agents.access.passwords import PasswordsBusy
from agents.access.requests import signed_in_user
from agents.accounts import sign_in as sign_in_service
from agents.accounts.authentication import factors, passkeys, sessions, throttle, totp
from agents.accounts.openid import provider_logout

from . import responses

NEW_SECRET_KEY = "new_secret"
WELCOMED_NAME_KEY = "welcomed"
WRONG_PASSWORD = gettext_lazy("Wrong username or password. Both are case-sensitive.")
WRONG_CODE = gettext_lazy("Wrong code. Wait for the next one in your app and try again.")


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect(sign_in_service.next_url(request))
    if request.method == "GET":
        return render_sign_in(request, name=request.session.pop(WELCOMED_NAME_KEY, ""))
    name = request.POST.get("username", "").replace("\0", "\ufffd")[
        : sign_in_service.MAX_USERNAME_CHARS
    ]
    password = request.POST.get("password", "")[: sign_in_service.MAX_PASSWORD_CHARS]
    check = partial(authenticate, request, username=name, password=password)
    try:
        user = sign_in_service.check_throttled(request, name, "password", check)
    except throttle.TooManyAttempts as wait:
        return render_sign_in(request, 429, problem=throttled_message(wait), name=name)
    except PasswordsBusy as busy:
        return render_sign_in(request, 503, problem=str(busy), name=name)
    if user is None:
        return render_sign_in(request, problem=WRONG_PASSWORD, name=name)
    return after_first_factor(request, user, "password", sign_in_service.next_url(request))


def throttled_message(wait: throttle.TooManyAttempts) -> str:
    return ngettext(
        "Too many attempts. Wait %(seconds)d second, then try again.",
        "Too many attempts. Wait %(seconds)d seconds, then try again.",
        wait.seconds,
    ) % {"seconds": wait.seconds}


def after_first_factor(
    request: HttpRequest,
    user: User,
    method: str,
    onward: str,
    provider_session: dict[str, str] | None = None,
) -> HttpResponse:
    """Sign a user in after the first factor, or ask for the second."""
    has_any = factors.has_second_factor(user)
    if has_any or authentication.requires_mfa(user):
        sign_in_service.require_second_factor(request, user, provider_session)
        url = reverse("people:second" if has_any else "people:set_up")
        return redirect(f"{url}?{urlencode({'next': onward})}")
    sign_in_service.complete(
        request, user, method, twice=False, provider_session=provider_session
    )
    return redirect(onward)


@never_cache
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session here, then the one at the identity provider."""
    user = signed_in_user(request)
    provider_session = provider_logout.ProviderSession.load(request)
    logout(request)
    audit.record(user, audit.SIGNED_OUT, factors.audit_subject(user))
    sessions.recheck_access(user.pk)
    if provider_session is None:
        return redirect("login")
    service = {"service": sign_in_service.sso_name()}
    if not provider_session.end_session_endpoint:
        sentence = _("You're signed out here. You may still be signed in at %(service)s.")
        messages.info(request, sentence % service)
        return redirect("login")
    state = provider_logout.new_state()
    url = provider_logout.end_session_url(request, provider_session, state)
    # A page that leads on, because the form's CSP forbids a redirect to another site.
    response = render(request, "people/signing_out.html", {"url": url, **service})
    provider_logout.set_state_cookie(response, state)
    return response


@never_cache
@require_GET
def signed_out(request: HttpRequest) -> HttpResponse:
    """Say that the sign-out is complete, when the identity provider sends the browser back."""
    service = sign_in_service.sso_name()
    is_expected = bool(service) and provider_logout.is_expected_return(request)
    if is_expected and not request.user.is_authenticated:
        sentence = _("You're signed out here and at %(service)s.")
        messages.success(request, sentence % {"service": service})
    response = redirect("login")
    response.delete_cookie(provider_logout.COOKIE_NAME, path=reverse("people:oidc"))
    return response


@never_cache
@require_http_methods(["GET", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """Ask for a code or a passkey after the password."""
    user = sign_in_service.pending_user(request)
    if user is None:
        return redirect("login")
    if request.method == "GET":
        return _render_second_factor(request, user)
    check = partial(factors.consume_code, user, request.POST.get("code", "")[:100])
    try:
        method = sign_in_service.check_throttled(request, user.get_username(), "code", check)
    except throttle.TooManyAttempts as wait:
        return _render_second_factor(request, user, 429, problem=throttled_message(wait))
    if not method:
        return _render_second_factor(
            request,
            user,
            problem=_("Wrong code, or the code was already used. Try another one."),
        )
    sign_in_service.complete(request, user, method, twice=True)
    return redirect(sign_in_service.next_url(request))


def _render_second_factor(
    request: HttpRequest, user: User, status: int = 200, **message: str
) -> HttpResponse:
    context = {
        "has_app": hasattr(user, "authenticator"),
        "has_passkey": user.passkeys.exists(),
        **message,
        "next": sign_in_service.next_url(request),
    }
    return render(request, "people/second.html", context, status=status)


@never_cache
@require_http_methods(["GET", "POST"])
def set_up_mfa(request: HttpRequest) -> HttpResponse:
    """Set up an app for a user who needs a second factor and has none."""
    user = sign_in_service.pending_user(request)
    if user is None or factors.has_second_factor(user):
        return redirect("login")
    secret = request.session.setdefault(NEW_SECRET_KEY, totp.new_secret())
    if request.method == "GET":
        return render_authenticator(request, user, secret, "people:set_up")
    step = totp.matching_step(secret, request.POST.get("code", "")[:100])
    if step is None:
        return render_authenticator(request, user, secret, "people:set_up", problem=WRONG_CODE)
    codes = factors.add_authenticator(user, secret, step)
    del request.session[NEW_SECRET_KEY]
    sign_in_service.complete(request, user, "totp", twice=True)
    return render_recovery_codes(request, codes, sign_in_service.next_url(request))


def render_authenticator(
    request: HttpRequest, user: User, secret: str, action: str, **message: Any
) -> HttpResponse:
    address = totp.provisioning_uri(secret, user.get_username())
    context = {
        "action": reverse(action),
        "address": address,
        "drawing": totp.render_qr(address),
        "secret": " ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        "is_demanded": action == "people:set_up",
        "next": sign_in_service.next_url(request),
        **message,
    }
    return render(request, "people/app.html", context)


def render_recovery_codes(request: HttpRequest, codes: list[str], onward: str) -> HttpResponse:
    response = render(request, "people/codes.html", {"codes": codes, "onward": onward})
    response["Cache-Control"] = "no-store"
    return response


@never_cache
@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    return responses.options_response(
        lambda: passkeys.authentication_options(request, sign_in_service.pending_user(request))
    )


@never_cache
@require_POST
def sign_in_with_passkey(request: HttpRequest) -> HttpResponse:
    """Sign in with a passkey alone, which verifies the user itself."""

    def take(data: dict[str, Any]) -> str:
        pending = sign_in_service.pending_user(request)
        try:
            user = passkeys.verify_assertion(request, data["answer"], pending)
        except passkeys.PasskeyRejected:
            record_passkey_failure(request, pending.get_username() if pending else "")
            raise
        sign_in_service.complete(request, user, "passkey", twice=True)
        return sign_in_service.next_url(request)

    return responses.result_response(request, take)


def record_passkey_failure(request: HttpRequest, name: str) -> None:
    """Record a failed passkey, throttled so that the log can't be flooded."""
    address = request_context.client_address(request)
    try:
        throttle.count_attempt(name or address, address)
    except throttle.TooManyAttempts as wait:
        raise passkeys.PasskeyRejected(throttled_message(wait)) from None
    sign_in_service.record_failure(request, name, "passkey")


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def welcome(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Let a new user choose a password by an administrator's link, once."""
    user = _invited_user(uid, token)
    if user is None:
        return render(request, "people/welcome.html", status=404)
    form = SetPasswordForm(user, request.POST if request.method == "POST" else None)
    if request.method == "GET" or not form.is_valid():
        return render(request, "people/welcome.html", {"form": form, "person": user})
    with transaction.atomic():
        # Only if the link is still valid: of concurrent requests, one succeeds.
        locked_user = _invited_user(uid, token, is_held=True)
        if locked_user is None:
            return render(request, "people/welcome.html", status=404)
        form.user = locked_user
        form.save()
        sessions.end(locked_user.visits.all())
        audited = factors.audit_subject(locked_user)
        audit.record(locked_user, audit.PASSWORD_SET, audited, by="link")
    request.session[WELCOMED_NAME_KEY] = user.get_username()
    messages.success(request, _("Password set. You can sign in now."))
    return redirect("login")


def _invited_user(uid: str, token: str, *, is_held: bool = False) -> Any:
    """Return the user of a valid link, with the row locked if it is to be used."""
    try:
        pk = int(urlsafe_base64_decode(uid))
    except (ValueError, OverflowError):
        return None
    people = get_user_model()._default_manager.filter(is_active=True)
    rows = people.select_for_update() if is_held else people
    user = rows.filter(pk=pk).first() if 0 < pk < 2**63 else None
    is_valid = user is not None and default_token_generator.check_token(user, token)
    return user if is_valid else None


def render_sign_in(request: HttpRequest, status: int = 200, **message: Any) -> HttpResponse:
    context = {
        "next": sign_in_service.next_url(request),
        "service": sign_in_service.sso_name(),
        **message,
    }
    return render(request, "registration/login.html", context, status=status)
