"""“Sign-in and security”: sign-in methods and active sessions."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model, update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import audit
from agents.access.audit import request_context
from agents.access.authentication import MFA_SESSION_KEY, requires_mfa
from agents.access.requests import UserRequest
from agents.accounts import sign_in
from agents.accounts.authentication import factors, passkeys, sessions, throttle, totp
from agents.accounts.models import Visit
from agents.catalog import mcp_servers

from . import responses
from .sign_in import (
    NEW_SECRET_KEY,
    WRONG_CODE,
    record_passkey_failure,
    render_authenticator,
    render_recovery_codes,
    throttled_message,
)

MFA_REQUIRED = gettext_lazy(
    "Two-factor authentication is required. Add another method before you remove this one."
)

View = Callable[..., HttpResponse]


def confirmation_required(view: View) -> View:
    """Require a recent confirmation of identity, in case a page was left open."""

    @wraps(view)
    def wrapper(request: UserRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if sign_in.is_confirmed(request):
            return view(request, *args, **kwargs)
        return redirect(sign_in.request_confirmation(request))

    return wrapper


@never_cache
@require_GET
def account_page(request: UserRequest) -> HttpResponse:
    return _render_account(request)


def _render_account(request: UserRequest, status: int = 200, **context: Any) -> HttpResponse:
    user = request.user
    session_key = request.session.session_key
    visits = Visit.objects.for_user(user)
    page_context = {
        "app": getattr(user, "authenticator", None),
        "passkeys": user.passkeys.all(),
        "codes": user.recovery_codes.count(),
        "has_factor": factors.has_second_factor(user),
        "identities": user.identities.all(),
        "service": sign_in.sso_name(),
        "visits": [(visit, sessions.device_name(visit.device), visit.pk) for visit in visits],
        "here": next((visit.pk for visit in visits if visit.session_id == session_key), None),
        "form": _password_form(user),
        "servers": mcp_servers.servers_to_sign_in(user),
        **context,
    }
    return render(request, "people/account.html", page_context, status=status)


def _password_form(user: User, typed: Any = None) -> SetPasswordForm:
    """Return the password form; users of another service can set a first password."""
    return (PasswordChangeForm if user.has_usable_password() else SetPasswordForm)(user, typed)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def confirm(request: UserRequest) -> HttpResponse:
    """Confirm the identity before changing sign-in settings."""
    if request.method == "GET":
        return _render_confirm(request)
    try:
        is_right = _verify_identity(request, request.user)
    except throttle.TooManyAttempts as wait:
        return _render_confirm(request, 429, problem=throttled_message(wait))
    if not is_right:
        return _render_confirm(request, problem=_("Wrong password or code. Try again."))
    sign_in.mark_confirmed(request)
    return redirect(sign_in.url_after_confirmation(request))


def _verify_identity(request: UserRequest, user: User) -> bool:
    """Verify as at sign-in: with a second factor, the password isn't enough."""
    if not factors.has_second_factor(user):
        return sign_in.verify_password(
            request, user, request.POST.get("password", ""), "confirm"
        )
    name = user.get_username()
    code = request.POST.get("code", "")[:100]
    is_right = bool(
        sign_in.check_throttled(
            request, name, "confirm", lambda: factors.consume_code(user, code)
        )
    )
    if is_right:
        throttle.record_success(name, request_context.client_address(request))
    return is_right


def _render_confirm(request: UserRequest, status: int = 200, **message: str) -> HttpResponse:
    user = request.user
    context = {
        "has_password": user.has_usable_password() and not factors.has_second_factor(user),
        "has_code": hasattr(user, "authenticator") or user.recovery_codes.exists(),
        "has_passkey": user.passkeys.exists(),
        "service": sign_in.sso_name() if user.identities.exists() else "",
        "onward": sign_in.url_after_confirmation(request),
        **message,
    }
    return render(request, "people/confirm.html", context, status=status)


@never_cache
@require_POST
def confirm_options(request: UserRequest) -> HttpResponse:
    return responses.options_response(
        lambda: passkeys.authentication_options(request, request.user)
    )


@never_cache
@require_POST
def confirm_passkey(request: UserRequest) -> HttpResponse:
    def take(data: dict[str, Any]) -> str:
        try:
            passkeys.verify_assertion(request, data["answer"], request.user)
        except passkeys.PasskeyRejected:
            record_passkey_failure(request, request.user.get_username())
            raise
        sign_in.mark_confirmed(request)
        return sign_in.url_after_confirmation(request)

    return responses.result_response(request, take)


@never_cache
@sensitive_post_parameters()
@require_POST
@confirmation_required
def change_password(request: UserRequest) -> HttpResponse:
    """Change the password; all other sessions end."""
    user = request.user
    form = _password_form(user, request.POST)
    if user.has_usable_password():
        try:
            is_right = sign_in.verify_password(
                request, user, request.POST.get("old_password", ""), "password"
            )
        except throttle.TooManyAttempts as wait:
            return _render_account(request, 429, problem=throttled_message(wait))
        if not is_right:
            form.full_clean()
            return _render_account(request, form=form)
    if not form.is_valid() or not _save_password(form, user):
        return _render_account(request, form=form)
    method = getattr(Visit.objects.for_user(user).first(), "way", "password")
    sessions.end(_other_visits(request))
    update_session_auth_hash(request, user)
    sessions.start(request, user, method)
    return _redirect_with_message(
        request, _("Password changed. You're signed out on all other devices.")
    )


@transaction.atomic
def _save_password(form: SetPasswordForm, user: User) -> bool:
    """Save it unless the password was changed, or the account deactivated, meanwhile."""
    people = get_user_model()._default_manager.select_for_update()
    locked_user = people.filter(pk=user.pk, password=user.password, is_active=True).first()
    if locked_user is None:
        form.add_error(None, _("Your password was changed in another session. Sign in again."))
        return False
    form.user = locked_user
    form.save()
    user.password = locked_user.password
    audit.record(user, audit.PASSWORD_SET, factors.audit_subject(user))
    return True


@never_cache
@require_http_methods(["GET", "POST"])
@confirmation_required
def set_up_authenticator(request: UserRequest) -> HttpResponse:
    """Set up an authenticator app, replacing an existing one."""
    secret = request.session.setdefault(NEW_SECRET_KEY, totp.new_secret())
    if request.method == "GET":
        return render_authenticator(request, request.user, secret, "people:app")
    step = totp.matching_step(secret, request.POST.get("code", "")[:100])
    if step is None:
        return render_authenticator(
            request, request.user, secret, "people:app", problem=WRONG_CODE
        )
    del request.session[NEW_SECRET_KEY]
    codes = factors.add_authenticator(request.user, secret, step)
    request.session[MFA_SESSION_KEY] = True
    messages.success(request, _("Authenticator app set up."))
    return _render_codes(request, codes)


@never_cache
@require_POST
@confirmation_required
def remove_authenticator(request: UserRequest) -> HttpResponse:
    if _is_last_factor(request, 1):
        return _render_account(request, problem=MFA_REQUIRED)
    factors.remove_authenticator(request.user)
    return _redirect_with_message(request, _("Authenticator app removed."))


def _is_last_factor(request: UserRequest, removed: int) -> bool:
    """Whether removing these would leave no required factor."""
    user = request.user
    factor_count = hasattr(user, "authenticator") + user.passkeys.count()
    return requires_mfa(user) and factor_count <= removed


@never_cache
@require_POST
@confirmation_required
def renew_recovery_codes(request: UserRequest) -> HttpResponse:
    """Create new recovery codes; earlier ones become invalid."""
    if not factors.has_second_factor(request.user):
        raise Http404
    return _render_codes(request, factors.create_recovery_codes(request.user))


def _render_codes(request: UserRequest, codes: list[str]) -> HttpResponse:
    if not codes:
        return redirect("people:account")
    return render_recovery_codes(request, codes, reverse("people:account"))


@never_cache
@require_POST
def passkey_options(request: UserRequest) -> HttpResponse:
    if not sign_in.is_confirmed(request):
        return JsonResponse({"to": sign_in.request_confirmation(request)})
    return responses.options_response(
        lambda: passkeys.registration_options(request, request.user)
    )


@never_cache
@require_POST
def add_passkey(request: UserRequest) -> HttpResponse:
    def take(data: dict[str, Any]) -> str:
        name = str(data.get("name", "")).replace("\0", "").encode("utf-8", "replace").decode()
        passkeys.register(request, request.user, data["answer"], name)
        messages.success(request, _("Passkey added."))
        return reverse("people:account")

    return responses.result_response(request, take)


@never_cache
@require_POST
def remove_passkey(request: UserRequest, pk: int) -> HttpResponse:
    get_object_or_404(request.user.passkeys, pk=pk)
    if not sign_in.is_confirmed(request):
        return redirect(sign_in.request_confirmation(request))
    if _is_last_factor(request, 1):
        return _render_account(request, problem=MFA_REQUIRED)
    passkeys.remove(request.user, pk)
    return _redirect_with_message(request, _("Passkey removed."))


@require_POST
def end_session(request: UserRequest, pk: int) -> HttpResponse:
    """End a session without confirmation, because a break-in is urgent."""
    mine = Visit.objects.for_user(request.user).filter(pk=pk)
    if not sessions.end(mine):
        raise Http404
    audit.record(request.user, audit.SESSION_ENDED, factors.audit_subject(request.user))
    return _redirect_with_message(request, _("Session revoked."))


@require_POST
def end_other_sessions(request: UserRequest) -> HttpResponse:
    sessions.end(_other_visits(request))
    audit.record(request.user, audit.SESSION_ENDED, factors.audit_subject(request.user))
    return _redirect_with_message(request, _("You're signed out on all other devices."))


def _other_visits(request: UserRequest) -> QuerySet[Visit]:
    session_key = request.session.session_key
    return Visit.objects.filter(user=request.user).exclude(session=session_key)


def _redirect_with_message(request: UserRequest, sentence: str) -> HttpResponse:
    messages.success(request, sentence)
    return redirect("people:account")
