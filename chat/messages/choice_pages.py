"""What the composer offers to choose: on the page, and as JSON for menus."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.catalog import model_choices, model_setups
from agents.catalog.model_choices import ModelChoice
from agents.models import Project
from agents.models.types import LazyText
from chat.errors import MessageRejected
from chat.models import ChatSession

from . import agent_choices, run_options
from .agent_choices import AgentChoice
from .run_options import RunOptions

EFFORTS: list[tuple[str, LazyText]] = [
    ("", _("Default")),
    ("low", _("Low")),
    ("medium", _("Medium")),
    ("high", _("High")),
]
MAX_CARDS = 6


def picker_context(
    request: UserRequest, chat: ChatSession | None, project: Project | None = None
) -> dict[str, Any]:
    """Return what the templates of the composer and of a new chat need."""
    rows = model_setups.model_rows()
    agents = agent_choices.list_agents(request.user, rows)
    may_choose = any(agent.allows_model for agent in agents)
    models = model_choices.list_models(request.user, rows) if may_choose else []
    options = _options(request, chat)
    is_gone = options.model and all(model.name != options.model for model in models)
    return {
        "agents": agents,
        "chosen": _requested(request, agents)
        or _default_of(project, agents)
        or agent_choices.selected(agents, chat),
        "has_more_agents": len(agents) > MAX_CARDS,
        "models": models,
        "options": options,
        "gone_model": options.model if is_gone else "",
        "can_tune": _can_tune(agents, models),
        "efforts": EFFORTS,
    }


def _options(request: HttpRequest, chat: ChatSession | None) -> RunOptions:
    """Return what the form has, if it was rejected, or what the chat uses."""
    try:
        posted = run_options.parse(request.POST)
    except MessageRejected:
        posted = None
    return posted or RunOptions.load(chat.options if chat else {})


def _can_tune(agents: Iterable[AgentChoice], models: Iterable[ModelChoice]) -> bool:
    """Whether any agent lets the user set effort or temperature of a model that has them."""
    choosable = any(model.is_tunable for model in models)
    return any(
        agent.model.is_tunable or (agent.allows_model and choosable)
        for agent in agents
        if agent.allows_parameters
    )


def _default_of(project: Project | None, agents: Iterable[AgentChoice]) -> str:
    """Return the agent that a new chat of a project starts with, if it can be chosen."""
    name = project.agent.name if project is not None and project.agent is not None else ""
    return name if any(agent.name == name for agent in agents) else ""


def _requested(request: HttpRequest, agents: Iterable[AgentChoice]) -> str:
    """Return the agent that the form or a link names, if it can be chosen."""
    name = request.POST.get("agent") or request.GET.get("agent", "")
    return name if any(agent.name == name for agent in agents) else ""


@require_GET
def choices(request: UserRequest) -> JsonResponse:
    """Return the agents and models this user can choose."""
    rows = model_setups.model_rows()
    agents = agent_choices.list_agents(request.user, rows)
    models = model_choices.list_models(request.user, rows)
    return JsonResponse(
        {
            "agents": [_agent_dict(agent) for agent in agents],
            "models": [asdict(model) for model in models],
        }
    )


def _agent_dict(agent: AgentChoice) -> dict[str, Any]:
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
