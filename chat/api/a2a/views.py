"""A2A for programs with a key: its agent cards, JSON-RPC and HTTP+JSON."""

import asyncio
from importlib import import_module

from django.http import Http404, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from agents.db import database
from agents.web.api_access import ApiRequest
from chat.api.calls import Caller


async def protocol(request: ApiRequest, path: str = "") -> HttpResponseBase:
    # A thread, because the SDK takes a moment to load.
    loaded = await asyncio.to_thread(import_module, "chat.api.a2a.protocol")
    response: HttpResponseBase = await loaded.respond(request)
    return response


@require_GET
async def agent_card(request: ApiRequest, agent: str) -> HttpResponse:
    """Return the card of one agent that the key's user can ask."""
    cards = await asyncio.to_thread(import_module, "chat.api.a2a.cards")
    row = await database.run(Caller(request.api_key).agents().filter(name=agent).first)
    if row is None:
        raise Http404
    return JsonResponse(cards.as_json(cards.agent_card(request, row)))
