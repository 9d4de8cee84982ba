"""What the composer offers to choose: on the page, and as JSON for menus."""

from dataclasses import asdict, replace
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.accounts.users import profiles
from agents.catalog.language_models import model_choices, model_setups
from agents.models import Agent, Project
from agents.models.types import LazyText
from chat.errors import MessageRejected
from chat.models import ChatSession

from .. import agent_choices, run_options
from ..run_options import RunOptions

EFFORTS: list[tuple[str, LazyText]] = [
    ("", _("Default")),
    ("low", _("Low")),
    ("medium", _("Medium")),
    ("high", _("High")),
]


def picker_context(
    request: UserRequest, chat: ChatSession | None, project: Project | None = None
) -> dict[str, Any]:
    """Return what the templates of the composer and of a new chat need."""
    rows = model_setups.model_rows()
    agents = agent_choices.list_agents(request.user, rows)
    may_choose = any(agent.allows_model for agent in agents)
    models = model_choices.list_models(request.user, rows) if may_choose else []
    try:
        posted_options = run_options.parse(request.POST)  # of a rejected form
    except MessageRejected:
        posted_options = None
    options = posted_options or RunOptions.load(chat.options if chat else {})
    # The model that a link to a new chat names, with an agent that allows it.
    linked = request.GET.get("model", "") if chat is None and not posted_options else ""
    if linked not in {model.name for model in models}:
        linked = ""
    options = replace(options, model=linked) if linked else options
    is_gone = options.model and all(model.name != options.model for model in models)
    has_tunable_model = any(model.is_tunable for model in models)
    # The agent that the form or a link names, or that chats of the project start with.
    names = {agent.name for agent in agents}
    chosen = request.POST.get("agent") or request.GET.get("agent", "")
    if chosen not in names and project is not None and project.agent is not None:
        chosen = project.agent.name
    if chosen not in names:
        chosen = agent_choices.selected(agents, chat)
    if linked and not any(agent.allows_model for agent in agents if agent.name == chosen):
        chosen = next(agent.name for agent in agents if agent.allows_model)
    return {
        "agents": agents,
        "chosen": chosen,
        "default_agent": agent_choices.selected(agents),
        "models": models,
        "options": options,
        "gone_model": options.model if is_gone else "",
        "can_tune": any(
            agent.model.is_tunable or (agent.allows_model and has_tunable_model)
            for agent in agents
            if agent.allows_parameters
        ),
        "efforts": EFFORTS,
    }


@require_POST
def default_agent(request: UserRequest) -> HttpResponse:
    """Save the agent with which the user's new chats start."""
    usable = Agent.objects.usable_by(request.user).filter(enabled=True)
    agent = usable.filter(name=request.POST.get("agent", "")).first()
    if agent is None:
        return HttpResponse(_("This agent isn’t available to you."), status=422)
    profiles.save_setting(request.user, default_agent=agent)
    return HttpResponse(status=204)


@require_GET
def choices(request: UserRequest) -> JsonResponse:
    """Return the agents and models this user can choose."""
    rows = model_setups.model_rows()
    agents = agent_choices.list_agents(request.user, rows)
    models = model_choices.list_models(request.user, rows)
    agent_dicts = [
        {
            "name": agent.name,
            "description": agent.description,
            "icon": agent.icon,
            "abilities": agent.abilities,
            "needs_approval": agent.needs_approval,
            "model": agent.label,
            "allows_model": agent.allows_model,
            "allows_parameters": agent.allows_parameters,
        }
        for agent in agents
    ]
    return JsonResponse({"agents": agent_dicts, "models": [asdict(model) for model in models]})
