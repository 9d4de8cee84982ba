"""Pages for sharing a chat: members and invitations."""

from typing import Any

from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.db.installation import configured
from chat.models import ChatSession, Invitation, Member, PublicLink

from . import members, public_links


@require_http_methods(["GET", "POST"])
def people(request: UserRequest, pk: int) -> HttpResponse:
    """List the members; the owner can add people."""
    if request.method == "GET":
        visible = ChatSession.objects.for_user(request.user)
        return render_panel(request, get_object_or_404(visible, pk=pk))
    chat = get_own_session(request, pk)
    name = request.POST.get("name", "")
    right = request.POST.get("right", "")
    try:
        members.add_member(chat, name, right)
    except members.SharingRejected as reason:
        return render_panel(request, chat, 422, problem=str(reason), name=name[:150])
    return panel_or_redirect(request, chat)


@require_POST
def remove(request: UserRequest, pk: int, user: int) -> HttpResponse:
    chat = get_own_session(request, pk)
    person = get_object_or_404(User, pk=user)
    try:
        members.remove_member(chat, person.pk)
    except (Member.DoesNotExist, members.SharingRejected):
        raise Http404 from None
    return panel_or_redirect(request, chat)


@require_POST
def leave(request: UserRequest, pk: int) -> HttpResponse:
    chat = get_object_or_404(ChatSession.objects.for_user(request.user), pk=pk)
    try:
        members.leave(chat, request.user)
    except (Member.DoesNotExist, members.SharingRejected):
        raise Http404 from None
    return redirect("chat:new")


@require_POST
def invite(request: UserRequest, pk: int) -> HttpResponse:
    """Create an invitation link and display it once."""
    chat = get_own_session(request, pk)
    right = request.POST.get("right", "")
    hours = request.POST.get("hours", "")
    try:
        token = members.create_invitation(chat, right, hours)
    except members.SharingRejected as reason:
        return render_panel(request, chat, 422, problem=str(reason))
    url = request.build_absolute_uri(reverse("chat:join", args=[token]))
    return render_panel(request, chat, made=url)


@require_POST
def withdraw(request: UserRequest, pk: int, link: int) -> HttpResponse:
    chat = get_own_session(request, pk)
    try:
        members.withdraw_invitation(chat, link)
    except Invitation.DoesNotExist:
        raise Http404 from None
    return panel_or_redirect(request, chat)


@require_http_methods(["GET", "POST"])
def join(request: UserRequest, token: str) -> HttpResponse:
    """Ask before joining, because link previews must not join."""
    try:
        link = members.find_invitation(token, request.user)
        if request.method == "GET" and not members.has_access(request.user, link):
            return _render_uncached(request, "chat/sharing/join.html", {"link": link})
        chat = members.join(token, request.user)
    except members.SharingRejected as reason:
        return _render_uncached(
            request, "chat/sharing/no_way_in.html", {"reason": str(reason)}, status=404
        )
    return redirect("chat:session", chat.pk)


def _render_uncached(
    request: UserRequest, template: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    response = render(request, template, context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def get_own_session(request: UserRequest, pk: int) -> ChatSession:
    owned = ChatSession.objects.owned_by(request.user).select_related("user")
    return get_object_or_404(owned, pk=pk)


def panel_or_redirect(
    request: UserRequest, chat: ChatSession, updated_link: str = ""
) -> HttpResponse:
    if request.htmx:
        return render_panel(request, chat, updated_link=updated_link)
    return redirect("chat:people", chat.pk)


def render_panel(
    request: UserRequest, chat: ChatSession, status: int = 200, **message: str
) -> HttpResponse:
    panel = members.build_panel(chat, request.user)
    links = public_links.active_links(chat) if panel.is_owner else ()
    context = {
        "session": chat,
        "panel": panel,
        "public_links": links,
        "public_levels": PublicLink.Level.choices,
        "public_hours": public_links.DEFAULT_HOURS,
        "may_suggest": configured.SUGGEST_USERS.value,
        "may_publish": public_links.is_enabled(),
        **message,
    }
    # htmx doesn't swap error responses, so the status stays 200.
    if request.htmx:
        response = render(request, "chat/sharing/people.html#panel", context)
    else:
        response = render(request, "chat/sharing/people.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
