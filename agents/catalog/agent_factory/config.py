"""What the rows say about a run's agents: loaded at once, before anything is built."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from agents.access import permissions
from agents.access.permissions import Restrictions
from agents.budgets import payer_of
from agents.engine.guardrails import ModelChecks
from agents.engine.loop import AskPersonTool
from agents.engine.planner import ReActPlanner
from agents.engine.plans import ExecutionPlan, read_definition
from agents.engine.privacy import Pseudonymizer
from agents.engine.tool import Tool
from agents.memory import RememberTool
from agents.memory.candidates import Candidate, find_candidates
from agents.memory.user_requests import Request, save_requested
from agents.models import Agent, GuardrailPattern, Run, ToolRegistration

from .. import (
    agent_versions,
    custom_instructions,
    model_setups,
    planner_factory,
    project_instructions,
    tool_factory,
)
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
    tool_limits,
    tool_links,
)

# What a rerun or a user's choice can override.
OVERRIDABLE_FIELDS = ("instructions", "fallback_models", "effort", "temperature")


@dataclass(frozen=True)
class AgentConfig:
    """What the rows say about an agent and its handoffs, loaded at once."""

    agent: Agent
    planners: list[ReActPlanner]
    tool_rows: list[ToolRegistration]
    local_tools: list[Tool]
    patterns: list[GuardrailPattern]
    sub_agents: list[Agent]
    is_rerun: bool
    experts: tuple[str, ...] = ()  # groups of people it can ask
    limits: dict[str, int] = field(default_factory=dict)  # max calls per tool
    pinned: frozenset[str] = frozenset()  # tools that are always sent
    notes: tuple[dict[str, Any], ...] = ()  # about what the instructions contain
    memories: tuple[Candidate, ...] = ()  # that may fit the question
    request: Request | None = None  # what the user asked to remember
    checks: ModelChecks = field(default_factory=ModelChecks)


def load_team(run: Run) -> list[AgentConfig]:
    """Return the run's agent first, then all agents reachable from it."""
    if run.is_draft_run:
        restrictions = permissions.restrictions_for(run.user_id)
        return _load_reachable(run, [resolve_draft(run).agent], restrictions, Pseudonymizer())
    if run.agent is None or not run.agent.enabled:
        raise NoAgentAvailable("The agent of this run was disabled.")
    restrictions = permissions.restrictions_for(run.user_id)
    if run.agent_id in restrictions.agents:
        raise AgentForbidden
    _record_version(run)
    return _load_reachable(
        run, [_apply_overrides(run.agent, run.overrides)], restrictions, Pseudonymizer()
    )


def load_workflow(run: Run) -> tuple[AgentConfig, ExecutionPlan, list[AgentConfig]]:
    """Return the workflow's own configuration, its plan, and all reachable agents."""
    if run.agent is None or run.workflow is None:
        raise NoAgentAvailable("The agent of this run was disabled.")
    restrictions = permissions.restrictions_for(run.user_id)
    if run.agent_id in restrictions.agents:
        raise AgentForbidden
    _record_version(run)
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
    patterns = active_patterns(run, agent)
    config = AgentConfig(
        agent,
        planner_factory.build_planners(agent, run.model, run, agent_pseudonymizer),
        tool_rows,
        tool_factory.build_tools(tool_rows),
        patterns,
        sub_agents,
        is_rerun=run.is_rerun and not run.is_continuation,
        limits=tool_limits(tool_links(agent.pk)),
        checks=build_checks(patterns, agent_pseudonymizer, payer=payer_of(run, agent)),
    )
    return config, plan, _load_reachable(run, list(sub_agents), restrictions, pseudonymizer)


def _record_version(run: Run) -> None:
    """Record the agent's version at the start; a resumed run keeps it."""
    if not run.version:
        agent_versions.record(run)


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
    reachable_agents = [
        sub_agent for sub_agent in reachable if sub_agent.pk not in restrictions.agents
    ]
    sub_agents = [sub_agent for sub_agent in reachable_agents if sub_agent != agent]
    local_tools = tool_factory.build_tools(tool_rows)
    local_tools, documents = search_tools.bind(run, agent, local_tools)
    experts = expert_groups(run, agent) if _may_ask_people(agent, local_tools) else ()
    for ask_person in (tool for tool in local_tools if isinstance(tool, AskPersonTool)):
        ask_person.experts = experts
        ask_person.asker_approves = agent.asker_approves_questions
    agent_pseudonymizer = pseudonymizer_for(run, agent, pseudonymizer)
    planners = planner_factory.build_planners(
        agent,
        run.model if is_first else model_setups.model_name(agent),
        run,
        agent_pseudonymizer,
    )
    patterns = active_patterns(run, agent)
    load_guardrails = cache(partial(guardrails_from, agent, patterns))  # built only if needed
    for tool in local_tools:
        if isinstance(tool, RememberTool):
            tool.bind(run, agent, load_guardrails())
    if documents:
        planners = [planner.with_context(documents) for planner in planners]
    if is_first and (instructions := _user_instructions(run, agent)):
        instructions = custom_instructions.screened(instructions, load_guardrails())
        planners = [planner.with_context(instructions) for planner in planners]
    return AgentConfig(
        agent,
        planners,
        tool_rows,
        local_tools,
        patterns,
        [
            sub_agent
            for sub_agent in sub_agents
            if chosen is None or sub_agent.handoff_tool_name in chosen
        ],
        is_rerun=run.is_rerun and not run.is_continuation,
        experts=experts,
        limits=tool_limits(links),
        pinned=pinned_tools(links),
        memories=tuple(find_candidates(run, agent)) if is_first else (),
        request=save_requested(run, agent, load_guardrails) if is_first else None,
        checks=build_checks(patterns, agent_pseudonymizer, payer=payer_of(run, agent)),
    )


def _user_instructions(run: Run, agent: Agent) -> str:
    """Return the instructions of the run's project or, if it has none, of its user."""
    of_project = project_instructions.for_run(run)
    return of_project or custom_instructions.for_run(run, agent)


def _may_ask_people(agent: Agent, local_tools: Iterable[Tool]) -> bool:
    is_planner = agent.mode == Agent.Mode.PLAN
    return is_planner or any(isinstance(tool, AskPersonTool) for tool in local_tools)


def _apply_overrides(agent: Agent, overrides: dict[str, Any]) -> Agent:
    """Return the agent with a run's own settings; the row stays as it is."""
    own_settings = {name: overrides[name] for name in OVERRIDABLE_FIELDS if name in overrides}
    changed = copy(agent) if own_settings else agent
    vars(changed).update(own_settings)
    return changed
