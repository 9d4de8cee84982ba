"""The share dialog of a collection."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.db.installation import configured
from agents.db.sanitize import parse_id
from agents.models import Collection, CollectionShare
from agents.web import people_suggestions

from .. import sharing
from .collections import get_managed


@require_http_methods(["GET", "POST"])
def access(request: UserRequest, pk: int) -> HttpResponse:
    """List who has access; who manages the collection can add people."""
    if request.method == "GET":
        visible = Collection.objects.for_user(request.user).library()
        return _render_panel(request, get_object_or_404(visible, pk=pk))
    collection = get_managed(request, pk)
    name = request.POST.get("name", "")
    right = request.POST.get("right", "")
    try:
        sharing.add_person(collection, request.user, name, right)
    except sharing.SharingRejected as reason:
        return _render_panel(request, collection, 422, problem=str(reason), name=name[:150])
    return _panel_or_redirect(request, collection)


@require_POST
def readers(request: UserRequest, pk: int) -> HttpResponse:
    """Save the groups, and whether everyone can read it."""
    collection = get_managed(request, pk)
    groups = filter(None, map(parse_id, request.POST.getlist("groups")))
    try:
        sharing.set_readers(collection, request.user, groups, "is_open" in request.POST)
    except sharing.SharingRejected as reason:
        return _render_panel(request, collection, 422, problem=str(reason))
    return _panel_or_redirect(request, collection)


@require_POST
def remove(request: UserRequest, pk: int, user: int) -> HttpResponse:
    collection = get_managed(request, pk)
    try:
        sharing.remove_person(collection, request.user, user)
    except CollectionShare.DoesNotExist:
        raise Http404 from None
    return _panel_or_redirect(request, collection)


@require_POST
def accept(request: UserRequest, pk: int) -> HttpResponse:
    """Add a collection of another user to one's own search, or dismiss it."""
    visible = Collection.objects.for_user(request.user).library()
    offered = visible.exclude(owner=None).exclude(owner=request.user)
    collection = get_object_or_404(offered, pk=pk)
    is_accepted = request.POST.get("is_accepted") == "yes"
    sharing.accept(collection, request.user, is_accepted=is_accepted)
    return redirect("library:list")


@require_GET
def suggest(request: UserRequest, pk: int) -> HttpResponse:
    """Return people whose name starts with the typed text."""
    collection = get_managed(request, pk)
    members = [collection.owner_id, *collection.shares.values_list("user", flat=True)]
    return people_suggestions.respond(request, [pk for pk in members if pk])


def _panel_or_redirect(request: UserRequest, collection: Collection) -> HttpResponse:
    if request.htmx:
        return _render_panel(request, collection)
    return redirect("library:access", collection.pk)


def _render_panel(
    request: UserRequest, collection: Collection, status: int = 200, **message: Any
) -> HttpResponse:
    context = {
        "collection": collection,
        "panel": sharing.build_panel(collection, request.user),
        "may_suggest": configured.SUGGEST_USERS.value,
        **message,
    }
    # htmx doesn't swap error responses, so the status stays 200.
    if request.htmx:
        response = render(request, "library/access.html#panel", context)
    else:
        response = render(request, "library/access.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
