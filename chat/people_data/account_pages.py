"""What somebody can do about what is kept of them."""

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.access import audit
from agents.accounts import sign_in, throttle
from agents.accounts.views.sign_in import too_often
from agents.web.downloads import download

from . import data_export, erasure


@require_GET
def data(request: HttpRequest) -> HttpResponse:
    return _page(request)


@require_POST
def take(request: HttpRequest) -> HttpResponse:
    return archive(request, request.user)


@require_POST
def erase(request: HttpRequest) -> HttpResponse:
    """The account, by its owner, who shows once more that it is theirs."""
    if not settings.SELF_ERASURE:
        raise Http404
    if not sign_in.is_confirmed(request):
        return redirect(sign_in.ask_again(request, reverse("chat:data")))
    try:
        problem = _hindrance(request)
    except throttle.TooOften as wait:
        return _page(request, problem=too_often(wait), status=429)
    if problem:
        return _page(request, problem=problem, status=422)
    user = request.user
    logout(request)
    report = async_to_sync(erasure.erase)(user, None)
    gone = _("Your account and your data have been deleted.")
    messages.success(request, " ".join([gone, *report.sentences]))
    return redirect("login")


def archive(request: HttpRequest, user) -> HttpResponse:
    """All that is kept of somebody, as a file; who took it is kept, too."""
    audit.record(request.user, audit.PERSON_EXPORTED, audit.person(user))
    name = f"ashiato-{user.pk}-{timezone.localdate():%Y-%m-%d}.zip"
    return download(data_export.archive(user), name, "application/zip")


def _hindrance(request: HttpRequest) -> str:
    """Why it is not to be done, in words; mostly nothing."""
    name = request.user.get_username()
    if request.POST.get("name", "").strip() != name:
        return _("Type your name, %(name)s, to say that you mean it.") % {"name": name}
    try:
        erasure.check(request.user)
    except erasure.NotErased as reason:
        return str(reason)
    typed = request.POST.get("password", "")
    if request.user.has_usable_password() and not sign_in.is_password(
        request, request.user, typed, "erase"
    ):
        return _("This is not your password.")
    return ""


def _page(request: HttpRequest, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "plan": erasure.plan(request.user),
        "may_erase": settings.SELF_ERASURE,
        "is_confirmed": sign_in.is_confirmed(request),
        "problem": problem,
        "here": "data",
    }
    return render(request, "chat/data.html", context, status=status)
