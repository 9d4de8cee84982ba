"""“Sign-in and security”: what somebody signs in with, and where they are signed in."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model, update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import audit
from agents.access.audit import request_context
from agents.access.authentication import PROVED_TWICE, demands_more
from agents.accounts import factors, passkeys, sessions, sign_in, throttle, totp
from agents.accounts.models import Visit

from . import responses
from .sign_in import NEW_SECRET, NOT_RIGHT, app_page, codes_page, refuse_passkey, too_often

DEMANDED = gettext_lazy(
    "More than a password is demanded of you here. Set up something else first."
)

View = Callable[..., HttpResponse]


def confirmed(view: View) -> View:
    """Only for whoever has shown who they are in the last minutes: a page left open is not."""

    @wraps(view)
    def asked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if sign_in.is_confirmed(request):
            return view(request, *args, **kwargs)
        return redirect(sign_in.ask_again(request))

    return asked


@never_cache
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(request: HttpRequest, status: int = 200, **told: Any) -> HttpResponse:
    user, here = request.user, request.session.session_key
    seen = Visit.objects.for_user(user)
    about = {
        "app": getattr(user, "authenticator", None),
        "passkeys": user.passkeys.all(),
        "codes": user.recovery_codes.count(),
        "has_factor": factors.has_any(user),
        "identities": user.identities.all(),
        "service": sign_in.service(),
        "visits": [(visit, sessions.device(visit.device), visit.pk) for visit in seen],
        "here": next((visit.pk for visit in seen if visit.session_id == here), None),
        "form": _password_form(user),
        **told,
    }
    return render(request, "people/account.html", about, status=status)


def _password_form(user: Any, typed: Any = None) -> SetPasswordForm:
    """Whoever has none yet, and comes by another service, can choose one."""
    return (PasswordChangeForm if user.has_usable_password() else SetPasswordForm)(user, typed)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def confirm(request: HttpRequest) -> HttpResponse:
    """Show once more who you are, before something about that is changed."""
    if request.method == "GET":
        return _confirm(request)
    try:
        is_right = _is_right(request, request.user)
    except throttle.TooOften as wait:
        return _confirm(request, 429, problem=too_often(wait))
    if not is_right:
        return _confirm(request, problem=_("That is not right."))
    sign_in.confirm(request)
    return redirect(sign_in.after_confirming(request))


def _is_right(request: HttpRequest, user: Any) -> bool:
    """As much as at signing in: where there is a second factor, the password isn't enough."""
    if not factors.has_any(user):
        return sign_in.is_password(request, user, request.POST.get("password", ""), "confirm")
    name, code = user.get_username(), request.POST.get("code", "")[:100]
    is_right = bool(sign_in.checked(request, name, "confirm", lambda: factors.used(user, code)))
    if is_right:
        throttle.succeeded(name, request_context.address(request))
    return is_right


def _confirm(request: HttpRequest, status: int = 200, **told: str) -> HttpResponse:
    user = request.user
    about = {
        "has_password": user.has_usable_password() and not factors.has_any(user),
        "has_code": hasattr(user, "authenticator") or user.recovery_codes.exists(),
        "has_passkey": user.passkeys.exists(),
        "service": sign_in.service() if user.identities.exists() else "",
        "onward": sign_in.after_confirming(request),
        **told,
    }
    return render(request, "people/confirm.html", about, status=status)


@never_cache
@require_POST
def confirm_options(request: HttpRequest) -> HttpResponse:
    return responses.asked(lambda: passkeys.ask_to_show(request, request.user))


@never_cache
@require_POST
def confirm_passkey(request: HttpRequest) -> HttpResponse:
    def take(told: dict[str, Any]) -> str:
        try:
            passkeys.shown(request, told["answer"], request.user)
        except passkeys.NotTaken:
            refuse_passkey(request, request.user.get_username())
            raise
        sign_in.confirm(request)
        return sign_in.after_confirming(request)

    return responses.answered(request, take)


@never_cache
@sensitive_post_parameters()
@require_POST
@confirmed
def password(request: HttpRequest) -> HttpResponse:
    """A new one; every other session ends with the old one."""
    user = request.user
    form = _password_form(user, request.POST)
    if user.has_usable_password():
        try:
            is_right = sign_in.is_password(
                request, user, request.POST.get("old_password", ""), "password"
            )
        except throttle.TooOften as wait:
            return _page(request, 429, problem=too_often(wait))
        if not is_right:
            form.full_clean()
            return _page(request, form=form)
    if not form.is_valid() or not _save_password(form, user):
        return _page(request, form=form)
    way = getattr(Visit.objects.for_user(user).first(), "way", "password")
    sessions.end(_others(request))
    update_session_auth_hash(request, user)
    sessions.begin(request, user, way)
    return _done(request, _("Your password is changed. You are signed out everywhere else."))


@transaction.atomic
def _save_password(form: SetPasswordForm, user: Any) -> bool:
    """Save it unless the password was changed, or the account switched off, meanwhile."""
    people = get_user_model()._default_manager.select_for_update()
    same = people.filter(pk=user.pk, password=user.password, is_active=True).first()
    if same is None:
        form.add_error(None, _("Your password was changed in another session. Sign in again."))
        return False
    form.user = same
    form.save()
    user.password = same.password
    audit.record(user, audit.PASSWORD_SET, factors.name_of(user))
    return True


@never_cache
@require_http_methods(["GET", "POST"])
@confirmed
def app(request: HttpRequest) -> HttpResponse:
    """Set up an app that shows codes, in place of one that was there."""
    secret = request.session.setdefault(NEW_SECRET, totp.new_secret())
    if request.method == "GET":
        return app_page(request, request.user, secret, "people:app")
    step = totp.step_of(secret, request.POST.get("code", "")[:100])
    if step is None:
        return app_page(request, request.user, secret, "people:app", problem=NOT_RIGHT)
    del request.session[NEW_SECRET]
    made = factors.add_app(request.user, secret, step)
    request.session[PROVED_TWICE] = True
    messages.success(request, _("Your authenticator app is set up."))
    return _told_codes(request, made)


@never_cache
@require_POST
@confirmed
def remove_app(request: HttpRequest) -> HttpResponse:
    if _is_last(request, 1):
        return _page(request, problem=DEMANDED)
    factors.remove_app(request.user)
    return _done(request, _("The authenticator app is removed."))


def _is_last(request: HttpRequest, going: int) -> bool:
    """Whether nothing would be left of what is demanded of this person."""
    user = request.user
    there = hasattr(user, "authenticator") + user.passkeys.count()
    return demands_more(user) and there <= going


@never_cache
@require_POST
@confirmed
def codes(request: HttpRequest) -> HttpResponse:
    """New codes for paper; those before are of no use any more."""
    if not factors.has_any(request.user):
        raise Http404
    return _told_codes(request, factors.new_codes(request.user))


def _told_codes(request: HttpRequest, made: list[str]) -> HttpResponse:
    if not made:
        return redirect("people:account")
    return codes_page(request, made, reverse("people:account"))


@never_cache
@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    if not sign_in.is_confirmed(request):
        return JsonResponse({"to": sign_in.ask_again(request)})
    return responses.asked(lambda: passkeys.ask_to_make(request, request.user))


@never_cache
@require_POST
def add_passkey(request: HttpRequest) -> HttpResponse:
    def take(told: dict[str, Any]) -> str:
        name = str(told.get("name", "")).replace("\0", "").encode("utf-8", "replace").decode()
        passkeys.made(request, request.user, told["answer"], name)
        messages.success(request, _("The passkey is added."))
        return reverse("people:account")

    return responses.answered(request, take)


@never_cache
@require_POST
def remove_passkey(request: HttpRequest, pk: int) -> HttpResponse:
    get_object_or_404(request.user.passkeys, pk=pk)
    if not sign_in.is_confirmed(request):
        return redirect(sign_in.ask_again(request))
    if _is_last(request, 1):
        return _page(request, problem=DEMANDED)
    passkeys.remove(request.user, pk)
    return _done(request, _("The passkey is removed."))


@require_POST
def end_one(request: HttpRequest, pk: int) -> HttpResponse:
    """Needs no proof: whoever finds a stranger in their account is in a hurry."""
    mine = Visit.objects.for_user(request.user).filter(pk=pk)
    if not sessions.end(mine):
        raise Http404
    audit.record(request.user, audit.SESSION_ENDED, factors.name_of(request.user))
    return _done(request, _("That session has ended."))


@require_POST
def end_others(request: HttpRequest) -> HttpResponse:
    sessions.end(_others(request))
    audit.record(request.user, audit.SESSION_ENDED, factors.name_of(request.user))
    return _done(request, _("You are signed out everywhere else."))


def _others(request: HttpRequest):
    here = request.session.session_key
    return Visit.objects.filter(user=request.user).exclude(session=here)


def _done(request: HttpRequest, sentence: str) -> HttpResponse:
    messages.success(request, sentence)
    return redirect("people:account")
