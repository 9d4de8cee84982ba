"""Console pages to download or erase a user's data."""

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.access import audit, masking
from agents.access.requests import UserRequest
from agents.accounts import sign_in
from agents.accounts.users.forms import can_edit_user

from . import erasure, erasure_report
from .account_pages import archive_response

ERASE_PERMISSION = "auth.delete_user"


def urls(site: admin.AdminSite) -> list[URLPattern]:
    return [
        path("person/<int:pk>/data/", site.admin_view(download_data), name="chat_person_data"),
        path("person/<int:pk>/erase/", site.admin_view(erase), name="chat_person_erase"),
    ]


@require_POST
@permission_required(["auth.view_user", masking.UNMASK_PERMISSION], raise_exception=True)
def download_data(request: UserRequest, pk: int) -> HttpResponseBase:
    return archive_response(request, _get_person(request, pk))


@require_http_methods(["GET", "POST"])
@permission_required(ERASE_PERMISSION, raise_exception=True)
def erase(request: UserRequest, pk: int) -> HttpResponse:
    """Display what will be erased; erase it once the name is typed."""
    person = _get_person(request, pk)
    if request.method == "GET":
        return _render_page(request, person)
    if not sign_in.is_confirmed(request):
        return redirect(sign_in.request_confirmation(request, request.path))
    if problem := _erase_problem(request, person):
        return _render_page(request, person, problem=problem, status=422)
    audit_person = audit.person(person)
    report = async_to_sync(erasure.erase)(person, request.user)
    audit_person.refresh_from_db()
    gone = _("All data of %(name)s has been erased.") % {"name": audit_person}
    messages.success(request, " ".join([gone, *report.sentences]))
    return redirect("admin:auth_user_changelist")


def _get_person(request: UserRequest, pk: int) -> User:
    """Return the user, unless they have more permissions than the administrator."""
    person = get_user_model()._default_manager.filter(pk=pk).first()
    if person is None or not can_edit_user(request.user, person):
        raise Http404
    return person


def _erase_problem(request: UserRequest, person: User) -> str:
    if person.pk == request.user.pk:
        return _("You can't erase your own account here. Ask another administrator to do it.")
    if request.POST.get("name", "").strip() != person.get_username():
        return _("Type the username exactly as it appears to confirm.")
    try:
        erasure.check(person)
    except erasure.ErasureRejected as reason:
        return str(reason)
    return ""


def _render_page(
    request: UserRequest, person: User, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": _("Erase %(name)s") % {"name": person.get_username()},
        "person": person,
        "plan": erasure_report.plan(person),
        "problem": problem,
    }
    return render(request, "admin/chat/erase_person.html", context, status=status)
