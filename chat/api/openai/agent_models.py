"""Agents as models: found by their readable names, in any case, or by their IDs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Min, QuerySet
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.catalog import agent_factory
from agents.db import database
from agents.db.compiled_queries import compiled_query
from agents.db.sanitize import sanitize_text
from agents.models import Agent
from agents.web.api_errors import ApiError
from chat.messages import run_factory

from ..calls import Caller
from .access import caller_of

OWNER = "ashiato"
MAX_NAMES = 50


@require_GET
async def models(request: HttpRequest) -> JsonResponse:
    """List the agents that the key's user can ask."""
    caller = caller_of(request)
    return JsonResponse({"object": "list", "data": await database.run(_list, caller)})


@require_GET
async def model(request: HttpRequest, name: str) -> JsonResponse:
    """Return one of them."""
    caller = caller_of(request)
    return JsonResponse(await database.run(_one, caller, name))


def find(caller: Caller, name: str | None) -> Agent:
    """Return the agent of this name or ID, or the user's default; raise ApiError."""
    named = run_factory.find_agent(name, caller.user) if name else None
    return choose(caller.agents(), caller, name) if named is None else named


def choose(agents: QuerySet[Agent], caller: Caller, name: str | None) -> Agent:
    if not name:
        return agent_factory.default_agent(caller.user.pk)
    wanted = sanitize_text(name).strip()
    same = list(agents.filter(name__iexact=wanted))
    found = next((agent for agent in same if agent.name == wanted), None)
    if found is None and same:
        found = same[0]
    # An ID stays the same when the agent is renamed.
    if found is None and wanted.isascii() and wanted.isdigit() and len(wanted) < 19:
        found = agents.filter(pk=int(wanted)).first()
    if found is not None:
        return found
    names = ", ".join(agents.order_by("name").values_list("name", flat=True)[:MAX_NAMES])
    sentence = _("There is no agent named “%(name)s”. Available: %(names)s.")
    raise ApiError(
        404,
        sentence % {"name": wanted[:100], "names": names or _("none")},
        "model_not_found",
        param="model",
    )


def _list(caller: Caller) -> list[Mapping[str, Any]]:
    return [_describe(*columns) for columns in _models_of(caller.user.pk)]


def _one(caller: Caller, name: str) -> Mapping[str, Any]:
    agent = find(caller, name)
    created_at = agent.versions.aggregate(first=Min("created_at"))["first"]
    return _describe(agent.pk, agent.name, agent.description, created_at)


@compiled_query
def _models_of(user: int) -> QuerySet[Agent, tuple[int, str, str, datetime | None]]:
    agents = Agent.objects.open_to(user).filter(enabled=True).order_by("name")
    return agents.values_list("pk", "name", "description", Min("versions__created_at"))


def _describe(
    pk: int, name: str, description: str, created_at: datetime | None
) -> Mapping[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(created_at.timestamp()) if created_at else 0,
        "owned_by": OWNER,
        "agent_id": pk,
        "description": description,
    }
