"""The list of chats: search, filing, folders, several chats at once."""

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore
from agents.access.requests import UserRequest
from agents.db import database
from agents.db.sanitize import parse_id
from chat.models import ChatSession, Folder
from chat.sessions import deletion

from . import filing, search
from . import session_list as listing

MAX_SELECTED = 1_000
NOTICE_SECONDS = 6  # without anything to undo

# What a page can do to chats, and what undoes it.
FILINGS: dict[str, Callable[[User, Collection[int]], list[int]]] = {
    "pin": filing.pin,
    "unpin": filing.unpin,
    "archive": filing.archive,
    "unarchive": filing.unarchive,
}
UNDONE_BY = {"archive": "unarchive", "unarchive": "archive"}
RESTORED_KINDS = {"restore": "chat", "restore_messages": "message"}


@require_GET
def session_list(request: UserRequest) -> HttpResponse:
    """Render the list: all chats, older ones, archived ones, or search results."""
    user = request.user
    cursor = request.GET.get("before", "")
    if not cursor:
        return render_list(request, user)
    listed = listing.older(user, cursor)
    rows = [listing.session_row(row, listing.live_runs(user)) for row in listed.recent]
    context = {"sections": listing.older_by_day(rows, cursor), "cursor": listed.cursor}
    return render(request, "chat/listing/_sessions.html#older", context)


@require_GET
def find(request: UserRequest) -> HttpResponse:
    """Return search results as JSON, for the command palette."""
    results = search.search(request.user, request.GET.get("q", ""))
    response = JsonResponse({"results": search.as_json(results)})
    response["Cache-Control"] = "no-store"
    return response


@require_POST
def act(request: UserRequest) -> HttpResponse:
    """Pin, move, archive or restore the selected chats."""
    user = request.user
    chats = _selected(request)
    action = request.POST.get("action", "")
    if action in RESTORED_KINDS:
        done = []
        for pk in chats:
            with suppress(ObjectDoesNotExist, CannotRestore):
                recently_deleted.restore(user, f"{RESTORED_KINDS[action]}:{pk}")
                done.append(pk)
    elif action == "move":
        folder = None  # the list itself
        if pk_text := request.POST.get("folder", ""):
            folder = get_object_or_404(Folder, pk=parse_id(pk_text), user=user)
        done = filing.move(user, chats, folder)
    elif action in FILINGS:
        done = FILINGS[action](user, chats)
    else:
        return HttpResponse(status=400)
    deletion.announce([user.pk])
    response = _after(request, user)
    sentence = _sentence(action, len(done), len(chats) - len(done))
    can_undo = done and "undone" not in request.POST
    _notify(response, sentence, undo=UNDONE_BY.get(action, "") if can_undo else "", ids=done)
    return response


@require_POST
async def delete_selected(request: UserRequest) -> HttpResponse:
    """Delete the user's own among the selected chats; those of others stay."""
    return await _delete(request, await request.auser(), _selected(request))


@require_POST
async def delete(request: UserRequest, pk: int) -> HttpResponse:
    user = await request.auser()
    await aget_object_or_404(ChatSession.objects.owned_by(user), pk=pk)
    return await _delete(request, user, [pk])


async def _delete(request: UserRequest, user: User, chats: list[int]) -> HttpResponse:
    own = ChatSession.objects.owned_by(user).filter(pk__in=chats)
    done = []
    for chat in await database.run(list, own):
        await deletion.delete(chat)
        done.append(chat.pk)
    response = await database.run(_after, request, user)
    sentence = _sentence("delete", len(done), len(chats) - len(done))
    _notify(response, sentence, undo="restore" if done else "", ids=done)
    page_url = (request.htmx.current_url if request.htmx else None) or ""
    if any(f"/chat/{pk}/" in page_url for pk in done):
        response["HX-Redirect"] = redirect("chat:new").url
    return response


@require_http_methods(["GET", "POST"])
def folders(request: UserRequest) -> HttpResponse:
    """Offer the user's folders; create one and move the selected chats into it."""
    user = request.user
    if request.method == "GET":
        context = {"folders": filing.folders(user), "is_new": "new" in request.GET}
        response = render(request, "chat/listing/_folder_choice.html", context)
        response["Cache-Control"] = "no-store"
        return response
    try:
        folder = filing.create_folder(user, request.POST.get("name", ""))
    except filing.FilingRejected as reason:
        return _rejected(request, user, str(reason))
    chats = _selected(request)
    if chats:
        filing.move(user, chats, folder)
    deletion.announce([user.pk])
    return _after(request, user)


@require_POST
def change_folder(request: UserRequest, pk: int) -> HttpResponse:
    """Rename, collapse or move one of the user's folders."""
    user = request.user
    folder = get_object_or_404(Folder.objects.select_related("user"), pk=pk, user=user)
    if "name" in request.POST:
        try:
            filing.rename_folder(folder, request.POST["name"])
        except filing.FilingRejected as reason:
            return _rejected(request, user, str(reason))
    if request.POST.get("shift") in {"-1", "1"}:
        filing.shift_folder(folder, int(request.POST["shift"]))
    if "collapsed" in request.POST:
        folder.is_collapsed = request.POST["collapsed"] == "1"
        folder.save(update_fields=["is_collapsed"])
        return HttpResponse(status=204)  # the page has already collapsed it
    deletion.announce([user.pk])
    return _after(request, user)


@require_POST
def delete_folder(request: UserRequest, pk: int) -> HttpResponse:
    """Delete a folder; its chats return to the list."""
    user = request.user
    folder = get_object_or_404(Folder, pk=pk, user=user)
    folder.delete()
    deletion.announce([user.pk])
    response = _after(request, user)
    sentence = _("Folder “%(name)s” deleted. Its chats are in the list again.")
    _notify(response, sentence % {"name": folder.name})
    return response


def render_list(request: UserRequest, user: User) -> HttpResponse:
    context = list_context(request, user)
    return render(request, "chat/listing/_sessions.html#sessions", context)


def list_context(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return what the list shows: by the search text, the archive, or everything."""
    query = _parameter(request, "q").strip()
    if query:
        results = search.search(user, query)
        return {"query": query, "found": results, "is_cut": len(results) == search.MAX_FOUND}
    if _parameter(request, "view") == "archived":
        return {"archived": listing.archived(user), "is_archive": True}
    listed = listing.read(user)
    return {
        "sections": listing.sections(listed, listing.live_runs(user)),
        "cursor": listed.cursor,
    }


def _parameter(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, request.GET.get(name, ""))


def _selected(request: UserRequest) -> list[int]:
    texts = request.POST.get("ids", "").split(",")[:MAX_SELECTED]
    return [pk for text in texts if (pk := parse_id(text)) is not None]


def _after(request: UserRequest, user: User) -> HttpResponse:
    return render_list(request, user) if request.htmx else redirect("chat:new")


def _rejected(request: UserRequest, user: User, reason: str) -> HttpResponse:
    # htmx doesn't swap error responses, so the status stays 200.
    response = _after(request, user)
    _notify(response, reason, level="problem")
    if not request.htmx:
        response = HttpResponse(reason, status=422, content_type="text/plain; charset=utf-8")
    return response


def _notify(
    response: HttpResponse,
    sentence: str,
    *,
    undo: str = "",
    ids: Collection[int] = (),
    level: str = "",
) -> None:
    """Have the page show a message, with a button that undoes the action."""
    notice = {
        "text": sentence,
        "undo": undo,
        "ids": list(ids),
        "level": level,
        "seconds": deletion.UNDO_SECONDS if undo else NOTICE_SECONDS,
    }
    if sentence:
        response["HX-Trigger"] = json.dumps({"chats:notice": notice})


def _sentence(action: str, done: int, skipped: int) -> str:
    sentences = {
        "delete": ngettext("%(count)d chat deleted.", "%(count)d chats deleted.", done),
        "restore": ngettext("%(count)d chat restored.", "%(count)d chats restored.", done),
        "archive": ngettext("%(count)d chat archived.", "%(count)d chats archived.", done),
        "unarchive": ngettext(
            "%(count)d chat moved out of the archive.",
            "%(count)d chats moved out of the archive.",
            done,
        ),
    }
    if action == "restore" and not done:
        return _("It's too late to undo this: the chat has been permanently deleted.")
    if action == "restore_messages":
        return _("Restored.") if done else _("It's too late to undo this.")
    sentence = sentences[action] % {"count": done} if action in sentences else ""
    if action == "delete" and skipped:
        not_deleted = ngettext(
            "%(count)d chat belongs to another user and wasn't deleted.",
            "%(count)d chats belong to other users and weren't deleted.",
            skipped,
        )
        sentence += " " + not_deleted % {"count": skipped}
    return sentence
