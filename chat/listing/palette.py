"""The command palette's own data: the user's chats, the agents they can ask, console pages."""

import html
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
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
    """Return chats that match by title or text, and all agents and pages, to filter there."""
    query = request.GET.get("q", "")
    found = {"chats": _chats(request.user, query)}
    if "agents" in request.GET:
        found["agents"] = _agents(request.user)
        found["pages"] = _console_pages(request)
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


def _console_pages(request: UserRequest) -> list[dict[str, Any]]:
    """Return the console's pages that the user can open; the console's own list them, too."""
    if not request.user.is_staff:
        return []
    return [
        {
            "id": f"console-{page['admin_url']}",
            "label": f"{part['name']}: {page['name']}",
            "words": f"admin {entry['name']}",
            "icon": part["icon"],
            "href": page["admin_url"],
        }
        for part in admin.site.get_app_list(request)
        for entry in part["models"]
        for page in entry.get("tabs") or [entry]
        if page["admin_url"]
    ]


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
