"""What the composer offers to choose: on the page, and as JSON for menus."""

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from chat import agent_choices
from chat.models import ChatSession

MAX_CARDS = 6


def picker_context(request: UserRequest, chat: ChatSession | None) -> dict[str, Any]:
    """Return what the templates of the composer and of a new chat need."""
    agents = agent_choices.list_agents(request.user)
    return {
        "agents": agents,
        "chosen": _requested(request, agents) or agent_choices.selected(agents, chat),
        "has_more_agents": len(agents) > MAX_CARDS,
    }


def _requested(request: HttpRequest, agents: list[agent_choices.AgentChoice]) -> str:
    """Return the agent that the form or a link names, if it can be chosen."""
    name = request.POST.get("agent") or request.GET.get("agent", "")
    return name if any(agent.name == name for agent in agents) else ""


@require_GET
def choices(request: UserRequest) -> JsonResponse:
    """Return the agents and models this user can choose."""
    agents = agent_choices.list_agents(request.user)
    return JsonResponse({"agents": [_agent_dict(agent) for agent in agents]})


def _agent_dict(agent: agent_choices.AgentChoice) -> dict[str, Any]:
    return {
        "name": agent.name,
        "description": agent.description,
        "icon": agent.icon,
        "abilities": agent.abilities,
        "needs_approval": agent.needs_approval,
        "model": agent.label,
        "allows_model": agent.allows_model,
        "allows_parameters": agent.allows_parameters,
    }
