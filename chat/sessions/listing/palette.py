"""The command palette's own data: the user's chats, the agents they can ask, console pages."""

import html
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
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
    user = request.user
    query = request.GET.get("q", "")
    if query.strip():
        chats = []
        for result in search.search(user, query)[:MAX_CHATS]:
            entry = _entry(result.row)
            if result.hits:
                entry["hint"] = html.unescape(strip_tags(result.hits[0].excerpt))
                if "<mark" not in result.title:  # only its text matches
                    entry["href"] = result.hits[0].href
            chats.append(entry)
    else:
        chats = [
            _entry(chat) for chat in ChatSession.objects.for_user(user).saved()[:MAX_CHATS]
        ]
    entries = {"chats": chats}
    if "agents" in request.GET:
        new_chat = reverse("chat:new")
        entries["agents"] = [
            {
                "id": f"agent-{agent.pk}",
                "label": agent.name,
                "hint": agent.description,
                "href": f"{new_chat}?{urlencode({'agent': agent.name})}",
            }
            for agent in Agent.objects.open_to(user.pk).filter(enabled=True)[:MAX_AGENTS]
        ]
        entries["pages"] = []
        if user.is_staff:
            for entry in admin.site.get_app_list(request):  # the console's own pages
                for tab in entry["models"]:
                    if tab["admin_url"] == reverse("admin:index") or not tab["admin_url"]:
                        continue  # the console itself is on every page's list
                    is_first = tab is entry["models"][0]
                    entries["pages"].append(
                        {
                            "id": f"console-{tab['admin_url']}",
                            "label": str(entry["name"])
                            if is_first
                            else f"{entry['name']}: {tab['name']}",
                            "words": "admin",
                            "icon": entry["icon"],
                            "href": tab["admin_url"],
                        }
                    )
    return JsonResponse(entries, headers={"Cache-Control": "no-store"})


def _entry(chat: ChatSession) -> dict[str, Any]:
    href = reverse("chat:session", args=[chat.pk])
    return {"id": f"chat-{chat.pk}", "label": chat.title, "hint": chat.whose, "href": href}
