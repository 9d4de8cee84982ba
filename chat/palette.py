"""The command palette's own data: the user's chats and the agents they can ask."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.models import Agent
from chat import listing

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
    return [
        {
            "id": f"chat-{chat.pk}",
            "label": chat.title,
            "hint": chat.whose,
            "href": reverse("chat:session", args=[chat.pk]),
        }
        for chat in listing.search_sessions(user, query)[:MAX_CHATS]
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
