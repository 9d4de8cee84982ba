"""Builds the engine's agents, workflows and panels from their configuration."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from agents.budgets import ToolGate, payer_of
from agents.db import database
from agents.engine.attachments import AttachmentStore
from agents.engine.loop import (
    AgentRuntime,
    AskPersonTool,
    FallbackStrategy,
    GrantCheck,
    Handoff,
    HistoryLimits,
    OutputSchema,
    UntrustedPolicy,
    standard_policy,
)
from agents.engine.plans import MergeStrategy, Orchestrator, Panel, WorkflowRuntime
from agents.engine.resilience import RetryPolicy
from agents.engine.tool import Tool, ToolRegistry
from agents.engine.tool_selection import ToolSelector
from agents.installation import configured
from agents.models import Agent, Run, WorkflowVersion
from agents.tools.search import SearchTool

from .. import file_context, file_tables, tool_factory, tool_grants, tool_reliability
from . import result_caches, tool_selection
from .circuits import CIRCUITS
from .config import AgentConfig, load_team, load_workflow
from .experience_part import with_experiences
from .guardrails import guardrails_from
from .memory_part import with_memory
from .personal_data import run_attachment_store

RegistryLoader = Callable[..., Awaitable[ToolRegistry]]  # like tool_factory.build_registry


async def build(
    run: Run, registry: RegistryLoader = tool_factory.build_registry, *, asks: bool = True
) -> AgentRuntime:
    """Build an agent as the rows describe it now, with its handoffs.

    `registry` builds the tools of each of them.
    """
    if run.workflow_id is not None:
        return await _build_workflow(run, registry)
    first, *others = await database.run(load_team, run)
    first = await with_experiences(run, await with_memory(run, first))
    configs = await _with_tables(run, [first, *others])
    store = run_attachment_store(run)
    may_raise = asks and is_attended(run)
    team = await _build_team(configs, registry, asks, store, run, raises=may_raise)
    return team[configs[0].agent.name]


def is_attended(run: Run) -> bool:
    """Whether a person follows the run in a chat, and can be asked about its limits."""
    return run.user_id is not None and run.topic.startswith(tool_grants.CHAT_TOPIC_PREFIX)


async def _with_tables(run: Run, configs: list[AgentConfig]) -> list[AgentConfig]:
    """Let the agents query the tables that the user attached, if there are any."""
    tool = await file_tables.build_tool(run) if file_context.has_files(run) else None
    if tool is None:
        return configs
    return [replace(config, local_tools=[*config.local_tools, tool]) for config in configs]


async def _build_workflow(run: Run, registry: RegistryLoader) -> AgentRuntime:
    """Build a workflow with all tools and agents it names."""
    config, plan, others = await database.run(load_workflow, run)
    attachments = run_attachment_store(run)
    team = await _build_team(
        others,
        registry,
        True,
        attachments,
        run,
        raises=is_attended(run),
        is_workflow=True,
    )
    handoffs = [
        _handoff_tool(sub_agent, team, is_first=True) for sub_agent in config.sub_agents
    ]
    options = {"asks_before_writing": True} if config.is_rerun else {}
    tools = await registry(
        config.tool_rows, config.local_tools, [*handoffs, AskPersonTool()], **options
    )
    await result_caches.attach(run, config, tools)
    make = partial(WorkflowRuntime, plan=plan, roles=_agents_by_role(config.sub_agents))
    return _build_runtime(
        config,
        tools,
        make=make,
        auto_execute=True,
        name=run.agent_name,
        attachments=attachments,
        raises=is_attended(run),
        run=run,
    )


async def _build_team(
    configs: Iterable[AgentConfig],
    registry: RegistryLoader,
    asks: bool,
    attachments: AttachmentStore,
    run: Run,
    *,
    raises: bool = False,
    is_workflow: bool = False,
) -> dict[str, AgentRuntime]:
    """Build the agents; in a workflow, the user's standing approvals don't apply."""
    team: dict[str, AgentRuntime] = {}
    judge_calls: Counter[str] = Counter()
    for config in configs:
        agent = config.agent
        config.checks.calls = judge_calls  # the agents of a run share their limits
        added_tools: list[Tool] = [
            _handoff_tool(sub_agent, team) for sub_agent in config.sub_agents
        ]
        # A plan can always ask a person, whatever tools its agent has.
        added_tools += [_ask_person_tool(config)] if agent.mode == Agent.Mode.PLAN else []
        # In a rerun, writes need approval: the user may not want them repeated.
        options = {"asks_before_writing": True} if config.is_rerun else {}
        tools = await registry(config.tool_rows, config.local_tools, added_tools, **options)
        if asks:  # otherwise its tools do nothing
            await result_caches.attach(run, config, tools)
            if agent.learns:
                tool_reliability.mark_preferred(tools)
        if asks and not is_workflow:
            await result_caches.attach_replies(run, config)
        team[agent.name] = _build_runtime(
            config,
            tools,
            make=_runtime_factory(config, asks),
            auto_execute=agent.auto_execute_tools or not asks,
            name=agent.name,
            attachments=attachments,
            grants=_grant_check(run, config, added_tools) if not is_workflow else None,
            asks=asks,
            raises=raises,
            run=run,
            tool_selector=tool_selection.selector(config, run, len(tools.list_tools())),
        )
    return team


def _grant_check(
    run: Run, config: AgentConfig, added_tools: Iterable[Tool]
) -> GrantCheck | None:
    if config.is_rerun or run.is_experiment_run:
        return None
    added_names = {
        tool.name for tool in added_tools
    }  # handoffs and questions are never allowed ahead
    names = {row.name for row in config.tool_rows} - added_names
    return tool_grants.grant_check(run, config.agent.name, names)


def _ask_person_tool(config: AgentConfig) -> AskPersonTool:
    return AskPersonTool(config.experts, asker_approves=config.agent.asker_approves_questions)


def _build_runtime(
    config: AgentConfig,
    tools: ToolRegistry,
    *,
    make: Callable[..., AgentRuntime],
    auto_execute: bool,
    name: str,
    attachments: AttachmentStore,
    run: Run,
    grants: GrantCheck | None = None,
    asks: bool = True,
    raises: bool = False,
    tool_selector: ToolSelector | None = None,
) -> AgentRuntime:
    """Build a runtime; with `raises`, it asks before it passes a limit of its own."""
    agent, (planner, *fallbacks) = config.agent, config.planners
    return make(
        planner,
        tools,
        guardrails_from(agent, config.patterns, config.checks),
        FallbackStrategy(configured.TOOL_RETRIES.value),
        agent.max_steps,
        retry=RetryPolicy(max_retries=configured.MODEL_RETRIES.value),
        policy=standard_policy(
            agent.max_duplicate_tool_calls,
            agent.max_tool_calls_per_tool,
            tool_limits=config.limits,
            max_seconds=agent.max_seconds,
            max_tokens=agent.max_run_tokens,
            max_cost=agent.max_cost,
            owner=name,
            most_times=agent.max_raise if raises else 0,
        ),
        auto_execute_tools=auto_execute,
        output=OutputSchema(agent.output_schema) if agent.output_schema is not None else None,
        fallback_planners=fallbacks,
        circuits=CIRCUITS,
        attachments=attachments,
        allows_sampling=agent.allows_sampling,
        grants=grants,
        after_untrusted=cast(UntrustedPolicy, agent.after_untrusted if asks else "never"),
        retrieval_tool=SearchTool.name if agent.retrieves_first else "",
        history_limits=_history_limits(agent),
        notes=config.notes,
        spending=ToolGate(payer_of(run, agent)),
        tool_selector=tool_selector,
        name=name,
    )


def _history_limits(agent: Agent) -> HistoryLimits | None:
    """Return the limits of the history; plans and panels get it as it is."""
    if agent.mode != Agent.Mode.REACT:
        return None
    return HistoryLimits(
        turns=agent.max_history_turns,
        tokens=agent.max_history_tokens,
        summarizes=agent.summarizes_history,
        threshold=agent.summary_threshold / 100,
    )


def _runtime_factory(config: AgentConfig, asks: bool) -> Callable[..., AgentRuntime]:
    """Return the runtime for the agent's mode."""
    agent = config.agent
    match agent.mode:
        case Agent.Mode.PLAN:
            return partial(Orchestrator, **_orchestrator_options(config, asks))
        case Agent.Mode.PANEL:
            # The other half of the time is for merging the answers.
            seconds = agent.max_seconds / 2 if agent.max_seconds else None
            return partial(Panel, merge=cast(MergeStrategy, agent.merge), most_seconds=seconds)
    return AgentRuntime


def _orchestrator_options(config: AgentConfig, asks: bool) -> dict[str, Any]:
    """Return the options of an agent that works by a plan."""
    return {
        "shows_plan": config.agent.shows_plan and asks,
        "max_replans": config.agent.max_replans,
        "roles": _agents_by_role(config.sub_agents),
        "people": frozenset(name.lower() for name in config.experts),
    }


def _agents_by_role(agents: Iterable[Agent]) -> dict[str, str]:
    """Return agents by role."""
    return {role: agent.name for agent in agents for role in agent.role_names}


def workflow_agent_name(workflow: WorkflowVersion) -> str:
    """Return the agent name of a workflow's runs."""
    return workflow.workflow.name[: Run._meta.get_field("agent_name").max_length]


def _handoff_tool(
    agent: Agent, team: dict[str, AgentRuntime], *, is_first: bool = False
) -> Handoff:
    """Return a handoff that looks up its agent late, as agents can refer to each other."""
    return Handoff(agent.name, lambda: team[agent.name], agent.description, is_first=is_first)
