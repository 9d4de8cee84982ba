"""What the rows say about a run's agents: loaded at once, before anything is built."""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from agents.access import permissions
from agents.access.permissions import Restrictions
from agents.db.configuration_rows import one_configuration
from agents.engine.guardrails import Guardrails
from agents.engine.loop import AskPersonTool, Capability, ClientTool, Context
from agents.engine.planner import ReActPlanner
from agents.engine.plans import ExecutionPlan, read_definition
from agents.engine.privacy import Pseudonymizer
from agents.engine.sentences import Sentence as _
from agents.engine.tool import Tool
from agents.memory import RememberTool
from agents.memory.candidates import Reach, find_experiences, find_memories
from agents.memory.capability import Recall
from agents.memory.recall import AnyNote
from agents.memory.user_requests import save_requested
from agents.metering.budgets import payer_of
from agents.models import Agent, Run, ToolRegistration
from agents.models.sharing.collections import PROJECT_TOPIC_PREFIX

from .. import (
    agent_versions,
    caller_instructions,
    custom_instructions,
    project_instructions,
)
from ..language_models import model_setups, planner_factory
from ..tools import client_tools, tool_factory
from . import search_tools
from .errors import AgentForbidden, NoAgentAvailable
from .guardrails import active_patterns, guardrails_from
from .model_checks import build_checks
from .personal_data import pseudonymizer_for
from .relations import (
    draft_relations,
    enabled_tools,
    expert_groups,
    pinned_tools,
    resolve_draft,
    saved_relations,
    search_scope,
    tool_limits,
    tool_links,
)

# What a rerun or a user's choice can override.
OVERRIDABLE_FIELDS = (
    *("instructions", "fallback_models", "effort", "temperature"),
    *("output_schema", "max_output_tokens"),
)


@dataclass(frozen=True)
class AgentConfig:
    """What the rows say about an agent and its handoffs, loaded at once."""

    agent: Agent
    planners: list[ReActPlanner]
    tool_rows: list[ToolRegistration]
    local_tools: list[Tool]
    guardrails: Guardrails
    sub_agents: list[Agent]
    experts: tuple[str, ...] = ()  # groups of people it can ask
    limits: dict[str, int] = field(default_factory=dict)  # max calls per tool
    pinned: frozenset[str] = frozenset()  # tools that are always sent
    capabilities: tuple[Capability, ...] = ()  # what its instructions contain
    client_tools: tuple[ClientTool, ...] = ()  # functions of the program that asks


@one_configuration()
def load_team(run: Run) -> list[AgentConfig]:
    """Return the run's agent first, then all agents reachable from it."""
    if run.is_draft_run:
        restrictions = permissions.restrictions_for(run.user_id)
        return _load_reachable(run, [resolve_draft(run).agent], restrictions, Pseudonymizer())
    if run.agent is None or not run.agent.enabled:
        raise NoAgentAvailable(_("The agent of this run was disabled."))
    restrictions = permissions.restrictions_for(run.user_id)
    if run.agent_id in restrictions.agents:
        raise AgentForbidden
    if not run.version:  # a resumed run keeps it
        agent_versions.record(run)
    agent = _apply_overrides(run.agent, run.overrides)
    return _load_reachable(run, [agent], restrictions, Pseudonymizer())


@one_configuration()
def load_workflow(run: Run) -> tuple[AgentConfig, ExecutionPlan, list[AgentConfig]]:
    """Return the workflow's own configuration, its plan, and all reachable agents."""
    if run.agent is None or run.workflow is None:
        raise NoAgentAvailable(_("The agent of this run was disabled."))
    restrictions = permissions.restrictions_for(run.user_id)
    if run.agent_id in restrictions.agents:
        raise AgentForbidden
    if not run.version:
        agent_versions.record(run)
    plan = read_definition(run.workflow.text).plan
    plan = replace(plan, parameters={**plan.parameters, **run.parameters})
    steps = list(plan.walk())
    plan_tools = [row for row in enabled_tools() if row.name in {step.tool for step in steps}]
    tool_rows = [row for row in plan_tools if row.pk not in restrictions.tools]
    agent_names = {step.agent for step in steps}
    roles = {step.role.lower() for step in steps}
    agents = Agent.objects.filter(enabled=True).exclude(pk__in=restrictions.agents)
    sub_agents = [
        agent for agent in agents if agent.name in agent_names or agent.role_names & roles
    ]
    agent = _apply_overrides(run.agent, run.overrides)
    pseudonymizer = Pseudonymizer()
    agent_pseudonymizer = pseudonymizer_for(run, agent, pseudonymizer)
    config = AgentConfig(
        agent,
        planner_factory.build_planners(agent, run.model, run, agent_pseudonymizer),
        tool_rows,
        tool_factory.build_tools(tool_rows),
        _guardrails(run, agent, agent_pseudonymizer),
        sub_agents,
        limits=tool_limits(tool_links(agent.pk)),
    )
    return config, plan, _load_reachable(run, list(sub_agents), restrictions, pseudonymizer)


def _load_reachable(
    run: Run, queue: list[Agent], restrictions: Restrictions, pseudonymizer: Pseudonymizer
) -> list[AgentConfig]:
    """Load these agents and all they can hand off to, with the user's restrictions."""
    configs: dict[int, AgentConfig] = {}
    while queue:
        agent = queue.pop()
        if agent.pk not in configs:
            configs[agent.pk] = config = _load_config(run, agent, restrictions, pseudonymizer)
            queue += config.sub_agents
    return list(configs.values())


def _load_config(
    run: Run, agent: Agent, restrictions: Restrictions, pseudonymizer: Pseudonymizer
) -> AgentConfig:
    is_first = agent.pk == run.agent_id
    # Chosen tools don't apply to an agent that a workflow calls.
    chosen = run.overrides.get("tools") if is_first and not run.workflow_id else None
    all_links, reachable = (
        draft_relations(run) if is_first and run.is_draft_run else saved_relations(run, agent)
    )
    links = [link for link in all_links if link.tool.pk not in restrictions.tools]
    links = [link for link in links if chosen is None or link.tool.name in chosen]
    tool_rows = [link.configured_tool() for link in links]
    sub_agents = [
        sub_agent
        for sub_agent in reachable
        if sub_agent.pk not in restrictions.agents
        and sub_agent != agent
        and (chosen is None or sub_agent.handoff_tool_name in chosen)
    ]
    local_tools = tool_factory.build_tools(tool_rows)
    model = run.model if is_first else model_setups.model_name(agent)
    local_tools, documents = search_tools.bind(run, agent, model, local_tools)
    person_tools = [tool for tool in local_tools if isinstance(tool, AskPersonTool)]
    asks_people = agent.mode == Agent.Mode.PLAN or bool(person_tools)
    experts = expert_groups(run, agent) if asks_people else ()
    for ask_person in person_tools:
        ask_person.experts = experts
        ask_person.asker_approves = agent.asker_approves_questions
    agent_pseudonymizer = pseudonymizer_for(run, agent, pseudonymizer)
    planners = planner_factory.build_planners(agent, model, run, agent_pseudonymizer)
    guardrails = _guardrails(run, agent, agent_pseudonymizer)
    for tool in local_tools:
        if isinstance(tool, RememberTool):
            tool.bind(run, agent, guardrails)
    capabilities: list[Capability] = []
    if documents:
        capabilities.append(Context("documents", documents))
    functions: tuple[ClientTool, ...] = ()
    if is_first:
        capabilities += _user_instructions(run, agent, guardrails)
        functions = client_tools.for_run(run)
    config = AgentConfig(
        agent,
        planners,
        tool_rows,
        local_tools,
        guardrails,
        sub_agents,
        experts=experts,
        limits=tool_limits(links),
        pinned=pinned_tools(links).union(tool.name for tool in functions),
        client_tools=functions,
    )
    if is_first:
        capabilities += _recall(run, config)
    return replace(config, capabilities=tuple(capabilities))


def _guardrails(run: Run, agent: Agent, pseudonymizer: Pseudonymizer | None) -> Guardrails:
    patterns = active_patterns(run, agent)
    checks = build_checks(patterns, pseudonymizer, payer=payer_of(run, agent))
    return guardrails_from(agent, patterns, checks)


def _user_instructions(run: Run, agent: Agent, guardrails: Guardrails) -> list[Capability]:
    """Return the instructions of the run's project or, if it has none, of its user.

    Those of the program that asks follow.
    """
    source = "project"
    text = project_instructions.for_run(run)
    if not text:
        source = "profile"
        text = custom_instructions.for_run(run, agent)
    parts = {source: text, "caller": caller_instructions.for_run(run)}
    return [
        Context(source, text)
        for source, text in parts.items()
        if text and guardrails.accepts(text)
    ]


def _recall(run: Run, config: AgentConfig) -> list[Capability]:
    """Return the notes that may fit the question; save what it asks to remember."""
    agent = config.agent
    names = {row.name for row in config.tool_rows} | {tool.name for tool in config.local_tools}
    names |= {sub_agent.handoff_tool_name for sub_agent in config.sub_agents}
    topics = [f"{PROJECT_TOPIC_PREFIX}{run.project_id}"] if run.project_id else []
    # The collections in reach are read once, and only if an experience has some.
    collections = cache(lambda: search_scope(run, agent, topics).collections)
    reach = Reach(tools=frozenset(names), collections=collections)
    notes: list[AnyNote] = [*find_memories(run, agent), *find_experiences(run, agent, reach)]
    request = save_requested(run, agent, config.guardrails)
    has_any = bool(notes) or request is not None
    return [Recall(run, agent, notes, request)] if has_any and not run.workflow_id else []


def _apply_overrides(agent: Agent, overrides: dict[str, Any]) -> Agent:
    """Return the agent with a run's own settings; the row stays as it is."""
    own_settings = {name: overrides[name] for name in OVERRIDABLE_FIELDS if name in overrides}
    changed = copy(agent) if own_settings else agent
    vars(changed).update(own_settings)
    return changed
