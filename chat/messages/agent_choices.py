"""The agents that a user can choose, as the composer and the new chat page present them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.accounts.users import profiles
from agents.catalog.agent_icons import automatic_icon
from agents.catalog.language_models import model_choices, model_setups
from agents.catalog.language_models.model_choices import ModelChoice
from agents.catalog.samples import sample_questions
from agents.console.tool_admin import tool_settings
from agents.db.sentences import translate
from agents.models import Agent, AgentTool, LanguageModel, ToolRegistration
from agents.models.types import LazyText
from agents.web.presentation import model_label
from chat.models import ChatSession, Message

RECENT_MESSAGES = 100
MAX_LISTED_TOOLS = 2  # more are only counted

PRIVACY_NOTES: dict[str, LazyText] = {
    Agent.PersonalData.HIDDEN: gettext_lazy(
        "Personal data is masked before it reaches the model."
    ),
    Agent.PersonalData.UNKEPT: gettext_lazy(
        "Personal data is masked wherever it's saved or displayed."
    ),
}


@dataclass(frozen=True, kw_only=True)
class AgentChoice:
    """An agent to choose: what it is for, what it uses, and the model that will answer."""

    name: str
    description: str
    icon: str
    tools: tuple[str, ...]
    agents: tuple[str, ...]  # it can hand off to
    needs_approval: bool
    examples: tuple[str, ...]
    model: ModelChoice  # its own, or the default
    label: str
    source: str
    is_demo: bool
    promise: LazyText
    allows_model: bool
    allows_parameters: bool
    is_default: bool  # new chats start with it

    @property
    def abilities(self) -> str:
        """What it works with, in a few words."""
        if self.agents and not self.tools:
            count = len(self.agents)
            return ngettext("%(count)d agent", "%(count)d agents", count) % {"count": count}
        if len(self.tools) > MAX_LISTED_TOOLS:
            count = len(self.tools)
            return ngettext("%(count)d tool", "%(count)d tools", count) % {"count": count}
        return ", ".join(self.tools) or _("No tools")

    @property
    def searched(self) -> str:
        """The text that a search in the list looks at."""
        return " ".join((self.name, self.description, *self.tools, *self.agents, self.label))


def list_agents(user: User, models: Sequence[LanguageModel] | None = None) -> list[AgentChoice]:
    """Return the agents this user can choose: last used first, then the default.

    The models of all of them are read at once, unless the caller has them.
    """
    usable = Agent.objects.usable_by(user).filter(enabled=True).order_by("-is_default", "pk")
    agents = list(usable)
    models = model_setups.model_rows() if models is None else models
    relations = _Relations(user, agents)
    messages = Message.objects.filter(author=user, run__isnull=False).order_by("-pk")
    recent_agents = messages.values_list("run__agent", flat=True)[:RECENT_MESSAGES]
    ranks = {agent: rank for rank, agent in enumerate(dict.fromkeys(recent_agents))}
    in_order = sorted(agents, key=lambda agent: ranks.get(agent.pk, len(ranks)))
    default = model_setups.default_model(models)
    own_default = profiles.of_user(user).default_agent_id
    pinned = [agent for agent in agents if agent.pk == own_default]
    first = next(iter(pinned or agents), None)
    choices = []
    for agent in in_order:
        name = agent.model or default.model
        model_row = model_setups.model_row(name, models) if agent.model else None
        tools = relations.tools(agent.pk)
        handoffs = [name for _pk, name in relations.targets[agent.pk]]
        examples = sample_questions.for_agent(agent, relations.all_tools(agent.pk))
        choices.append(
            AgentChoice(
                name=agent.name,
                description=agent.description,
                icon=agent.icon or automatic_icon(agent, tools, has_handoffs=bool(handoffs)),
                tools=tuple(tools),
                agents=tuple(handoffs),
                needs_approval=relations.needs_approval(agent),
                examples=tuple(examples),
                model=model_choices.describe(name, models),
                label=model_label(model_row.label if model_row else name),
                source=_("set for this agent") if agent.model else translate(default.source),
                is_demo=name == model_setups.DEMO,
                promise=PRIVACY_NOTES.get(agent.personal_data, ""),
                allows_model=agent.allows_model_choice,
                allows_parameters=agent.allows_parameter_choice,
                is_default=agent is first,
            )
        )
    return choices


def selected(choices: list[AgentChoice], chat: ChatSession | None = None) -> str:
    """Return the agent that answers next: the last one used here, or the default."""
    names = [choice.name for choice in choices]
    if chat is not None:
        messages = chat.messages.filter(is_mention=False, run__agent_name__in=names)
        newest = messages.order_by("-pk").values_list("run__agent_name", flat=True).first()
        if newest:
            return newest
    return next((choice.name for choice in choices if choice.is_default), "")


class _Relations:
    """Tools and handoffs of several agents, as far as this user can use them."""

    def __init__(self, user: User, agents: Sequence[Agent]) -> None:
        self.links: Mapping[int, list[AgentTool]] = defaultdict(list)
        self.targets: Mapping[int, list[tuple[int, str]]] = defaultdict(list)  # of handoffs
        closed = ToolRegistration.objects.closed_to(user.pk).values("pk")
        links = AgentTool.objects.filter(tool__enabled=True).exclude(tool__in=closed)
        rows = links.select_related("tool__server", "tool__connection")
        for link in rows.order_by("tool__name"):
            self.links[link.agent_id].append(link)
        names = {agent.pk: agent.name for agent in agents}
        handoffs: Any = Agent.handoffs.through.objects.filter(to_agent__in=names)
        pairs = handoffs.values_list("from_agent", "to_agent")
        for agent, target in sorted(pairs, key=lambda pair: names[pair[1]]):
            self.targets[agent].append((target, names[target]))

    def tools(self, agent: int) -> list[str]:
        return [link.tool.name for link in self.links[agent]]

    def all_tools(self, agent: int) -> set[str]:
        """Return its tools, and those of the agents it can hand off to."""
        agents = [agent, *(target for target, _name in self.targets[agent])]
        return {tool for pk in agents for tool in self.tools(pk)}

    def needs_approval(self, agent: Agent) -> bool:
        links = self.links[agent.pk]
        if agent.mode == Agent.Mode.PLAN and agent.shows_plan:
            return True
        if not agent.auto_execute_tools:
            return bool(links)
        return any(tool_settings.requires_approval(link.configured_tool()) for link in links)
