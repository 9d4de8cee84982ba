"""Downloads of chats, and a page to print or save as PDF."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.db.sanitize import parse_id
from agents.web.downloads import download
from agents.web.presentation import RunView
from chat.models import ChatSession
from chat.sessions import conversation

from . import chat_export, zip_stream
from .zip_stream import File

MAX_CHATS = 500  # per download
MAX_PRINTED = 300  # messages
TYPES = {"json": "application/json", "md": "text/markdown; charset=utf-8"}


@require_GET
def export(request: UserRequest, pk: int, ending: str) -> HttpResponseBase:
    """Download a chat as JSON or Markdown."""
    if ending not in TYPES:
        raise Http404
    chat = _find_chats(request).filter(pk=pk).first()
    if chat is None:
        raise Http404
    _record(request, chat, ending)
    pieces = _pieces(chat, request.user, ending, has_steps=_wants_steps(request))
    return download(pieces, chat_export.file_name(chat, ending), TYPES[ending])


@require_POST
def export_several(request: UserRequest) -> HttpResponseBase:
    """Download chats as a ZIP of JSON or Markdown files."""
    ending, _dash, suffix = request.POST.get("format", "md").partition("-")
    ids = request.POST.getlist("ids")[:MAX_CHATS]
    pks = [pk for text in ids if (pk := parse_id(text)) is not None]
    chats = list(_find_chats(request).filter(pk__in=pks).order_by("pk"))
    if ending not in TYPES or not chats:
        raise Http404
    for chat in chats:
        _record(request, chat, ending)
    has_steps = suffix == "steps"
    files: Iterator[File] = (
        (
            chat_export.file_name(chat, ending),
            _pieces(chat, request.user, ending, has_steps=has_steps),
        )
        for chat in chats
    )
    name = f"ashiato-chats-{timezone.localdate():%Y-%m-%d}.zip"
    return download(zip_stream.archive(files), name, "application/zip")


@require_GET
def print_page(request: UserRequest, pk: int) -> HttpResponse:
    """Display the branch on the user's page as a document."""
    chat = get_object_or_404(_find_chats(request), pk=pk)
    _record(request, chat, "print")
    messages = list(islice(conversation.visible_messages(chat, request.user), MAX_PRINTED + 1))
    has_steps = _wants_steps(request)
    entries = []
    for message in messages[:MAX_PRINTED]:
        # Like a shared page: the whole answer, without what only works on a live page.
        view = RunView(message.run, "shared", may_decide=False) if message.run else None
        steps = view.steps if view and has_steps else ()
        entries.append({"message": message, "view": view, "steps": steps})
    context = {
        "session": chat,
        "entries": entries,
        "most": MAX_PRINTED if len(messages) > MAX_PRINTED else None,
        "has_steps": has_steps,
        "now": timezone.now(),
    }
    response = render(request, "chat/exports/print.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _pieces(chat: ChatSession, user: User, ending: str, *, has_steps: bool) -> Iterator[str]:
    if ending == "json":
        return chat_export.as_json(chat, user)
    return chat_export.as_markdown(chat, user, has_steps=has_steps)


def _find_chats(request: UserRequest) -> Any:
    return ChatSession.objects.for_user(request.user).select_related("user")


def _wants_steps(request: UserRequest) -> bool:
    return request.GET.get("steps") == "1"


def _record(request: UserRequest, chat: ChatSession, form: str) -> None:
    """Record that another user's chat was downloaded."""
    if chat.user_id != request.user.pk:
        audit.record(request.user, audit.SESSION_EXPORTED, f"chat:{chat.pk}", form=form)
