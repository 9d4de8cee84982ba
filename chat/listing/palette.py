"""The command palette's own data: the user's chats and the agents they can ask."""

import html
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.html import strip_tags
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.models import Agent
from chat.models import ChatSession

from . import search

MAX_CHATS = 20
MAX_AGENTS = 50


@require_GET
def palette(request: UserRequest) -> HttpResponse:
    """Return matching chats, by title and text, and all agents; the page filters those."""
    query = request.GET.get("q", "")
    found = {"chats": _chats(request.user, query)}
    if "agents" in request.GET:
        found["agents"] = _agents(request.user)
    return JsonResponse(found, headers={"Cache-Control": "no-store"})


def _chats(user: User, query: str) -> list[dict[str, Any]]:
    if not query.strip():
        newest = ChatSession.objects.for_user(user).saved()[:MAX_CHATS]
        return [_entry(chat) for chat in newest]
    return [_found_entry(found) for found in search.search(user, query)[:MAX_CHATS]]


def _entry(chat: ChatSession) -> dict[str, Any]:
    href = reverse("chat:session", args=[chat.pk])
    return {"id": f"chat-{chat.pk}", "label": chat.title, "hint": chat.whose, "href": href}


def _found_entry(found: search.FoundSession) -> dict[str, Any]:
    """Return a chat; if only its text matches, that message."""
    entry = _entry(found.row)
    if not found.hits:
        return entry
    hit = found.hits[0]
    entry["hint"] = html.unescape(strip_tags(hit.excerpt))
    is_titled = "<mark" in found.title
    return entry if is_titled else entry | {"href": hit.href}


def _agents(user: User) -> list[dict[str, Any]]:
    new = reverse("chat:new")
    return [
        {
            "id": f"agent-{agent.pk}",
            "label": agent.name,
            "hint": agent.description,
            "href": f"{new}?{urlencode({'agent': agent.name})}",
        }
        for agent in Agent.objects.open_to(user.pk).filter(enabled=True)[:MAX_AGENTS]
    ]
