"""Account pages for a user's own data."""

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.accounts import sign_in
from agents.accounts.authentication import throttle
from agents.accounts.views.sign_in import throttled_message
from agents.db.installation import configured
from agents.web.downloads import download
from chat.sharing import public_links

from . import data_export, erasure, erasure_report


@require_GET
def data_page(request: UserRequest) -> HttpResponse:
    return _render_page(request)


@require_POST
def download_data(request: UserRequest) -> HttpResponseBase:
    return archive_response(request, request.user)


@require_POST
def erase(request: UserRequest) -> HttpResponse:
    """Erase the user's own account after they confirm their identity."""
    if not configured.SELF_ERASURE.value:
        raise Http404
    if not sign_in.is_confirmed(request):
        return redirect(sign_in.request_confirmation(request, reverse("chat:data")))
    try:
        problem = _erase_problem(request)
    except throttle.TooManyAttempts as wait:
        return _render_page(request, problem=throttled_message(wait), status=429)
    if problem:
        return _render_page(request, problem=problem, status=422)
    user = request.user
    logout(request)
    report = async_to_sync(erasure.erase)(user, None)
    gone = _("Your account and your data have been deleted.")
    messages.success(request, " ".join([gone, *report.sentences]))
    return redirect("login")


def archive_response(request: UserRequest, user: User) -> HttpResponseBase:
    """Return a user's data as a file; the download is audited."""
    audit.record(request.user, audit.PERSON_EXPORTED, audit.person(user))
    name = f"ashiato-{user.pk}-{timezone.localdate():%Y-%m-%d}.zip"
    return download(data_export.archive(user), name, "application/zip")


def _erase_problem(request: UserRequest) -> str:
    """Return why the account can't be erased; usually empty."""
    name = request.user.get_username()
    if request.POST.get("name", "").strip() != name:
        return _("Type your username, %(name)s, to confirm.") % {"name": name}
    try:
        erasure.check(request.user)
    except erasure.ErasureRejected as reason:
        return str(reason)
    password = request.POST.get("password", "")
    if request.user.has_usable_password() and not sign_in.verify_password(
        request, request.user, password, "erase"
    ):
        return _("Wrong password. Try again.")
    return ""


def _render_page(request: UserRequest, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "plan": erasure_report.plan(request.user),
        "may_erase": configured.SELF_ERASURE.value,
        "is_confirmed": sign_in.is_confirmed(request),
        "problem": problem,
        "public_links": public_links.links_of(request.user),
        "here": "data",
    }
    return render(request, "chat/data.html", context, status=status)
