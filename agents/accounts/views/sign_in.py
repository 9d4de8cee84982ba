"""The pages of whoever is not signed in yet."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth import authenticate, get_user_model, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
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
from django.views.decorators.http import require_http_methods, require_POST

from agents.access import audit, authentication
from agents.access.audit import request_context
from agents.accounts import factors, passkeys, sessions, throttle, totp
from agents.accounts import sign_in as door

from . import responses

NEW_SECRET, WELCOMED = "new_secret", "welcomed"
WRONG = gettext_lazy("This name and password do not belong together. Both are case-sensitive.")
NOT_RIGHT = gettext_lazy("This code is not right. Wait for the next one that the app shows.")


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect(door.onward(request))
    if request.method == "GET":
        return sign_in_page(request, name=request.session.pop(WELCOMED, ""))
    name = request.POST.get("username", "").replace("\0", "\ufffd")[: door.MOST_NAME]
    password = request.POST.get("password", "")[: door.MOST_PASSWORD]
    check = partial(authenticate, request, username=name, password=password)
    try:
        user = door.checked(request, name, "password", check)
    except throttle.TooOften as wait:
        return sign_in_page(request, 429, problem=too_often(wait), name=name)
    if user is None:
        return sign_in_page(request, problem=WRONG, name=name)
    return after_one_factor(request, user, "password", door.onward(request))


def too_often(wait: throttle.TooOften) -> str:
    return ngettext(
        "Too many attempts. Wait %(seconds)d second, then try again.",
        "Too many attempts. Wait %(seconds)d seconds, then try again.",
        wait.seconds,
    ) % {"seconds": wait.seconds}


def after_one_factor(request: HttpRequest, user: Any, way: str, onward: str) -> HttpResponse:
    """Let somebody in who has shown one thing, or ask for the second one first."""
    has_any = factors.has_any(user)
    if has_any or authentication.demands_more(user):
        door.wait_for_second(request, user)
        page = reverse("people:second" if has_any else "people:set_up")
        return redirect(f"{page}?{urlencode({'next': onward})}")
    door.let_in(request, user, way, twice=False)
    return redirect(onward)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    user = request.user
    logout(request)
    audit.record(user, audit.SIGNED_OUT, factors.name_of(user))
    sessions.ask_again(user.pk)
    return redirect("login")


@never_cache
@require_http_methods(["GET", "POST"])
def second(request: HttpRequest) -> HttpResponse:
    """A code of an app or on paper, or a passkey, after the password."""
    user = door.halfway(request)
    if user is None:
        return redirect("login")
    if request.method == "GET":
        return _second(request, user)
    check = partial(factors.used, user, request.POST.get("code", "")[:100])
    try:
        way = door.checked(request, user.get_username(), "code", check)
    except throttle.TooOften as wait:
        return _second(request, user, 429, problem=too_often(wait))
    if not way:
        return _second(request, user, problem=_("This code is not right, or was used before."))
    door.let_in(request, user, way, twice=True)
    return redirect(door.onward(request))


def _second(request: HttpRequest, user: Any, status: int = 200, **told: str) -> HttpResponse:
    has_app = hasattr(user, "authenticator")
    about = {"has_app": has_app, "has_passkey": user.passkeys.exists(), **told}
    about["next"] = door.onward(request)
    return render(request, "people/second.html", about, status=status)


@never_cache
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest) -> HttpResponse:
    """An app for somebody of whom more than a password is demanded, and who has nothing."""
    user = door.halfway(request)
    if user is None or factors.has_any(user):
        return redirect("login")
    secret = request.session.setdefault(NEW_SECRET, totp.new_secret())
    if request.method == "GET":
        return app_page(request, user, secret, "people:set_up")
    step = totp.step_of(secret, request.POST.get("code", "")[:100])
    if step is None:
        return app_page(request, user, secret, "people:set_up", problem=NOT_RIGHT)
    made = factors.add_app(user, secret, step)
    del request.session[NEW_SECRET]
    door.let_in(request, user, "totp", twice=True)
    return codes_page(request, made, door.onward(request))


def app_page(
    request: HttpRequest, user: Any, secret: str, action: str, **told: Any
) -> HttpResponse:
    address = totp.address(secret, user.get_username())
    about = {
        "action": reverse(action),
        "address": address,
        "drawing": totp.drawn(address),
        "secret": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
        "is_demanded": action == "people:set_up",
        "next": door.onward(request),
        **told,
    }
    return render(request, "people/app.html", about)


def codes_page(request: HttpRequest, codes: list[str], onward: str) -> HttpResponse:
    response = render(request, "people/codes.html", {"codes": codes, "onward": onward})
    response["Cache-Control"] = "no-store"
    return response


@never_cache
@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    return responses.asked(lambda: passkeys.ask_to_show(request, door.halfway(request)))


@never_cache
@require_POST
def passkey(request: HttpRequest) -> HttpResponse:
    """A passkey alone is enough: it has seen to it that it is the right person."""

    def take(told: dict[str, Any]) -> str:
        known = door.halfway(request)
        try:
            user = passkeys.shown(request, told["answer"], known)
        except passkeys.NotTaken:
            refuse_passkey(request, known.get_username() if known else "")
            raise
        door.let_in(request, user, "passkey", twice=True)
        return door.onward(request)

    return responses.answered(request, take)


def refuse_passkey(request: HttpRequest, name: str) -> None:
    """No passkey can be guessed, but the log is not for anybody to fill."""
    place = request_context.address(request)
    try:
        throttle.enter(name or place, place)
    except throttle.TooOften as wait:
        raise passkeys.NotTaken(too_often(wait)) from None
    door.refuse(request, name, "passkey")


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def welcome(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """A link from an administrator, by which somebody chooses a password, once."""
    user = _invited(uid, token)
    if user is None:
        return render(request, "people/welcome.html", status=404)
    form = SetPasswordForm(user, request.POST if request.method == "POST" else None)
    if request.method == "GET" or not form.is_valid():
        return render(request, "people/welcome.html", {"form": form, "person": user})
    if not _set_first_password(form, uid, token):
        return render(request, "people/welcome.html", status=404)
    request.session[WELCOMED] = user.get_username()
    messages.success(request, _("Your password is set. Sign in with it."))
    return redirect("login")


def _set_first_password(form: SetPasswordForm, uid: str, token: str) -> bool:
    """Save the password if the link still holds; of several at once, it does for one."""
    with transaction.atomic():
        user = _invited(uid, token, is_held=True)
        if user is None:
            return False
        form.user = user
        form.save()
        sessions.end(user.visits.all())
        audit.record(user, audit.PASSWORD_SET, factors.name_of(user), by="link")
    return True


def _invited(uid: str, token: str, *, is_held: bool = False) -> Any:
    """Whom a link is for, as long as it holds; with their row locked, if it is to be used."""
    try:
        pk = int(urlsafe_base64_decode(uid))
    except (ValueError, OverflowError):
        return None
    people = get_user_model()._default_manager.filter(is_active=True)
    rows = people.select_for_update() if is_held else people
    user = rows.filter(pk=pk).first() if 0 < pk < 2**63 else None
    is_valid = user is not None and default_token_generator.check_token(user, token)
    return user if is_valid else None


def sign_in_page(request: HttpRequest, status: int = 200, **told: Any) -> HttpResponse:
    about = {"next": door.onward(request), "service": door.service(), **told}
    return render(request, "registration/login.html", about, status=status)
