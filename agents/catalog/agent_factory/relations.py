"""The tools, handoffs and experts of an agent or of the draft that a test run uses."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from agents.access import permissions
from agents.db.configuration_rows import configuration_query
from agents.knowledge import scope
from agents.models import Agent, AgentTool, Run, ToolRegistration

from .. import agent_spec

DRAFT_KEY = "tried"  # key of a test run's draft agent


def tool_names(agent: Agent, user: int | None = None) -> list[str]:
    """Return the tools and handoffs this user's agent can call."""
    restrictions = permissions.restrictions_for(user)
    tools = [
        link.tool.name
        for link in tool_links(agent.pk)
        if link.tool.pk not in restrictions.tools
    ]
    reachable = [
        sub_agent
        for sub_agent in _sub_agents(agent.pk)
        if sub_agent.pk not in restrictions.agents
    ]
    return sorted([*tools, *(sub_agent.handoff_tool_name for sub_agent in reachable)])


def resolve_draft(run: Run) -> agent_spec.ResolvedSpec:
    """Return the draft agent, which isn't saved."""
    resolved = agent_spec.resolve(run.overrides[DRAFT_KEY])
    resolved.agent.pk = run.agent_id
    return resolved


def saved_relations(run: Run, agent: Agent) -> tuple[list[AgentTool], list[Agent]]:
    """Return an agent's tools and handoffs; in a test run, handoffs to the draft."""
    reachable = _sub_agents(agent.pk)
    if run.is_draft_run:
        reachable = [
            resolve_draft(run).agent if sub_agent.pk == run.agent_id else sub_agent
            for sub_agent in reachable
        ]
    return tool_links(agent.pk), reachable


def draft_relations(run: Run) -> tuple[list[AgentTool], list[Any]]:
    draft = resolve_draft(run)
    tools = [link for link in draft.links if link.tool.enabled]
    return tools, [agent for agent in draft.many["handoffs"] if agent.enabled]


def tool_limits(links: Iterable[AgentTool]) -> dict[str, int]:
    return {link.tool.name: link.max_calls for link in links if link.max_calls}


def pinned_tools(links: Iterable[AgentTool]) -> frozenset[str]:
    """Return the tools that are sent with every question."""
    return frozenset(
        link.tool.name for link in links if link.sending == AgentTool.Sending.ALWAYS
    )


def expert_groups(run: Run, agent: Agent) -> tuple[str, ...]:
    """Return the groups the agent can ask."""
    if run.is_draft_run and agent.pk == run.agent_id:
        return tuple(group.name for group in resolve_draft(run).many.get("experts", ()))
    groups = Group.objects.filter(agents_that_ask=agent.pk).order_by("name")
    return tuple(groups.values_list("name", flat=True))


def search_scope(run: Run, agent: Agent, topics: Iterable[str] = ()) -> scope.Scope:
    """Return the documents the agent can search in this run; `topics` are of its project."""
    chosen = None
    if run.is_draft_run and agent.pk == run.agent_id:
        chosen = {row.pk for row in resolve_draft(run).many.get("collections", ())}
    return scope.for_run(run.user_id, run.topic, agent, topics=topics, chosen=chosen)


@configuration_query
def _sub_agents(agent: int) -> QuerySet[Agent]:
    return Agent.objects.filter(enabled=True, asked_by=agent)


def enabled_tools() -> QuerySet[ToolRegistration]:
    tools = ToolRegistration.objects.filter(enabled=True)
    return tools.select_related("server", "fallback", "connection")


@configuration_query
def tool_links(agent: int) -> QuerySet[AgentTool]:
    links = AgentTool.objects.filter(agent=agent, tool__enabled=True)
    return links.select_related("tool__server", "tool__fallback", "tool__connection")
