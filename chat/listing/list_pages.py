"""The list of chats: search, filing, folders, several chats at once."""

import json
from collections.abc import Callable, Collection
from typing import Any

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.db import database
from chat.models import ChatSession, Folder
from chat.sessions import deletion, message_deletion

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


@require_GET
def session_list(request: UserRequest) -> HttpResponse:
    """Render the list: all chats, older ones, archived ones, or search results."""
    user = request.user
    if cursor := request.GET.get("before", ""):
        return _render_older(request, user, cursor)
    return render_list(request, user)


@require_GET
def find(request: UserRequest) -> HttpResponse:
    """Return search results as JSON, for the command palette."""
    user = request.user
    found = search.search(user, request.GET.get("q", ""))
    response = JsonResponse({"results": search.as_json(found)})
    response["Cache-Control"] = "no-store"
    return response


@require_POST
def act(request: UserRequest) -> HttpResponse:
    """Pin, move, archive or restore the selected chats."""
    user = request.user
    chats, action = _selected(request), request.POST.get("action", "")
    if action == "restore":
        done, undo = deletion.restore(user, chats), ""
    elif action == "restore_messages":
        done, undo = message_deletion.restore(user, chats), ""
    elif action == "move":
        folder = _target_folder(request, user)
        done, undo = filing.move(user, chats, folder), ""
    elif action in FILINGS:
        done = FILINGS[action](user, chats)
        undo = UNDONE_BY.get(action, "")
    else:
        return HttpResponse(status=400)
    deletion.announce([user.pk])
    response = _after(request, user)
    sentence = _sentence(action, len(done), len(chats) - len(done))
    if "undone" in request.POST:
        undo = ""
    _notify(response, sentence, undo=undo if done else "", ids=done)
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
    if request.htmx and _is_on_one_of(request, done):
        response["HX-Redirect"] = redirect("chat:new").url
    return response


@require_http_methods(["GET", "POST"])
def folders(request: UserRequest) -> HttpResponse:
    """Offer the user's folders; create one and move the selected chats into it."""
    user = request.user
    if request.method == "GET":
        return _render_folders(request, user)
    try:
        folder = filing.create_folder(user, request.POST.get("name", ""))
    except filing.FilingRejected as reason:
        return _rejected(request, user, str(reason))
    chats = _selected(request)
    if chats:
        filing.move(user, chats, folder)
    deletion.announce([user.pk])
    return _after(request, user)


def _render_folders(request: UserRequest, user: User) -> HttpResponse:
    context = {"folders": filing.folders(user), "is_new": "new" in request.GET}
    response = render(request, "chat/listing/_folder_choice.html", context)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
def change_folder(request: UserRequest, pk: int) -> HttpResponse:
    """Rename, collapse or move one of the user's folders."""
    user = request.user
    folder = get_object_or_404(Folder.objects.select_related("user"), pk=pk, user=user)
    try:
        _change_folder(folder, request)
    except filing.FilingRejected as reason:
        return _rejected(request, user, str(reason))
    if "collapsed" in request.POST:
        return HttpResponse(status=204)  # the page has already collapsed it
    deletion.announce([user.pk])
    return _after(request, user)


def _change_folder(folder: Folder, request: UserRequest) -> None:
    if "name" in request.POST:
        filing.rename_folder(folder, request.POST["name"])
    if "collapsed" in request.POST:
        folder.is_collapsed = request.POST["collapsed"] == "1"
        folder.save(update_fields=["is_collapsed"])
    if request.POST.get("shift") in {"-1", "1"}:
        filing.shift_folder(folder, int(request.POST["shift"]))


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
        found = search.search(user, query)
        return {"query": query, "found": found, "is_cut": len(found) == search.MAX_FOUND}
    return _unsearched_context(request, user)


def _unsearched_context(request: HttpRequest, user: User) -> dict[str, Any]:
    if _parameter(request, "view") == "archived":
        return {"archived": listing.archived(user), "is_archive": True}
    listed = listing.read(user)
    return {
        "sections": listing.sections(listed, listing.live_runs(user)),
        "cursor": listed.cursor,
    }


def _render_older(request: UserRequest, user: User, cursor: str) -> HttpResponse:
    listed = listing.older(user, cursor)
    rows = [listing.session_row(row, listing.live_runs(user)) for row in listed.recent]
    context = {"sections": listing.older_by_day(rows, cursor), "cursor": listed.cursor}
    return render(request, "chat/listing/_sessions.html#older", context)


def _parameter(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, request.GET.get(name, ""))


def _selected(request: UserRequest) -> list[int]:
    texts = request.POST.get("ids", "").split(",")[:MAX_SELECTED]
    return [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19]


def _target_folder(request: UserRequest, user: User) -> Folder | None:
    """Return the folder to move chats into; None for the list itself."""
    pk = request.POST.get("folder", "")
    if not pk:
        return None
    if not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        raise Http404
    return get_object_or_404(Folder, pk=int(pk), user=user)


def _after(request: UserRequest, user: User) -> HttpResponse:
    return render_list(request, user) if request.htmx else redirect("chat:new")


def _rejected(request: UserRequest, user: User, reason: str) -> HttpResponse:
    # htmx doesn't swap error responses, so the status stays 200.
    response = _after(request, user)
    _notify(response, reason, level="problem")
    if not request.htmx:
        response = HttpResponse(reason, status=422, content_type="text/plain; charset=utf-8")
    return response


def _is_on_one_of(request: UserRequest, chats: Collection[int]) -> bool:
    here = request.htmx.current_url or ""
    return any(f"/chat/{pk}/" in here for pk in chats)


def _notify(
    response: HttpResponse,
    sentence: str,
    *,
    undo: str = "",
    ids: Collection[int] = (),
    level: str = "",
) -> None:
    """Have the page show a message, with a button that undoes the action."""
    about: dict[str, Any] = {"text": sentence, "undo": undo, "ids": list(ids)}
    about |= {"level": level, "seconds": deletion.UNDO_SECONDS if undo else NOTICE_SECONDS}
    if sentence:
        response["HX-Trigger"] = json.dumps({"chats:notice": about})


def _sentence(action: str, done: int, left: int) -> str:
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
    parts = [sentences[action] % {"count": done}] if action in sentences else []
    if action == "delete" and left:
        others = ngettext(
            "%(count)d chat belongs to someone else and wasn't deleted.",
            "%(count)d chats belong to someone else and weren't deleted.",
            left,
        )
        parts.append(others % {"count": left})
    if action == "restore" and not done:
        return _("It's too late to undo this: the chat has been permanently deleted.")
    if action == "restore_messages":
        return _("Restored.") if done else _("It's too late to undo this.")
    return " ".join(parts)
