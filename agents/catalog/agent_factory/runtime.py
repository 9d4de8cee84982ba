"""Builds the engine's agents, workflows and panels from their configuration."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import cast

from agents.db import database
from agents.db.installation import configured
from agents.engine.attachments import AttachmentStore
from agents.engine.loop import (
    AgentRuntime,
    Approvals,
    AskPersonTool,
    Attachments,
    Capability,
    Citations,
    Compaction,
    FallbackStrategy,
    FigureCheck,
    FirstRetrieval,
    Grants,
    Handoff,
    OutputSchema,
    ReplyCache,
    ResultCache,
    Sampling,
    Termination,
    UntrustedPolicy,
    standard_policy,
    without,
)
from agents.engine.plans import MergeStrategy, Orchestrator, Panel, WorkflowRuntime
from agents.engine.resilience import RetryPolicy
from agents.engine.tool import Tool, ToolRegistry
from agents.metering.budgets import Budget, payer_of
from agents.models import Agent, Run, WorkflowVersion
from agents.tools.python import RunPythonTool
from agents.tools.search import SearchTool

from ..attachments import code_files, file_context, file_tables
from ..tools import tool_factory, tool_grants
from ..tools.tool_reliability import PreferredTools
from . import result_caches, tool_selection
from .circuits import CIRCUITS
from .config import AgentConfig, load_team, load_workflow
from .personal_data import run_attachment_store

RegistryLoader = Callable[..., Awaitable[ToolRegistry]]  # like tool_factory.build_registry
Change = Callable[[list[Capability]], list[Capability]]


def as_dry_run(capabilities: list[Capability]) -> list[Capability]:
    """Return them for tools that do nothing: there is nothing to approve or to cache."""
    others = without(capabilities, ReplyCache, ResultCache, PreferredTools, Approvals)
    return [*others, Approvals(after_untrusted="never")]


def in_workflow(capabilities: list[Capability]) -> list[Capability]:
    """Return them for an agent of a workflow, where standing approvals don't apply, too."""
    return without(capabilities, Grants, ReplyCache)


async def build(
    run: Run, registry: RegistryLoader = tool_factory.build_registry, change: Change = list
) -> AgentRuntime:
    """Build an agent as the rows describe it now, with its handoffs.

    `registry` builds the tools of each of them, `change` says which of their capabilities a
    run like this has.
    """
    if run.is_rerun and not run.is_continuation:
        # Writes need approval: the user may not want them repeated.
        registry = partial(registry, asks_before_writing=True)
    if run.workflow_id is not None:
        return await _build_workflow(run, registry, change)
    configs = await database.run(load_team, run)
    _give_files(run, configs)
    tables = await file_tables.build_tool(run) if file_context.has_files(run) else None
    if tables is not None:
        # The agents can query the tables that the user attached.
        configs = [
            replace(config, local_tools=[*config.local_tools, tables]) for config in configs
        ]
    team = await _build_team(configs, registry, run, change, run_attachment_store(run))
    return team[configs[0].agent.name]


def is_attended(run: Run) -> bool:
    """Whether a person follows the run in a chat, and can be asked about its limits."""
    return run.user_id is not None and run.topic.startswith(tool_grants.CHAT_TOPIC_PREFIX)


async def _build_workflow(run: Run, registry: RegistryLoader, change: Change) -> AgentRuntime:
    """Build a workflow with all tools and agents it names."""
    config, plan, team_configs = await database.run(load_workflow, run)
    _give_files(run, [config, *team_configs])
    attachments = run_attachment_store(run)
    team = await _build_team(team_configs, registry, run, in_workflow, attachments)
    handoffs = [
        _handoff_tool(sub_agent, team, is_first=True) for sub_agent in config.sub_agents
    ]
    tools = await registry(config.tool_rows, config.local_tools, [*handoffs, AskPersonTool()])
    agent = config.agent
    capabilities = [
        *await result_caches.result_cache(run, config, tools),
        Budget(payer_of(run, agent)),
        *_shared_capabilities(run, config, run.agent_name, attachments),
        Approvals(after_untrusted=cast(UntrustedPolicy, agent.after_untrusted)),
    ]
    make = partial(WorkflowRuntime, plan=plan, roles=_agents_by_role(config.sub_agents))
    return _build_runtime(config, tools, make, run.agent_name, change(capabilities))


def _give_files(run: Run, configs: Iterable[AgentConfig]) -> None:
    """Let the agents' Python code open the files of the run's chat."""
    for config in configs:
        for tool in config.local_tools:
            if isinstance(tool, RunPythonTool):
                tool.files = partial(code_files.load, run)


async def _build_team(
    configs: Iterable[AgentConfig],
    registry: RegistryLoader,
    run: Run,
    change: Change,
    attachments: AttachmentStore,
) -> dict[str, AgentRuntime]:
    team: dict[str, AgentRuntime] = {}
    judge_calls: Counter[str] = Counter()
    for config in configs:
        agent = config.agent
        # The agents of a run share the limits of their model checks.
        config.guardrails.model_checks.calls = judge_calls
        added_tools: list[Tool] = [
            _handoff_tool(sub_agent, team) for sub_agent in config.sub_agents
        ]
        # A plan can always ask a person, whatever tools its agent has.
        if agent.mode == Agent.Mode.PLAN:
            added_tools.append(
                AskPersonTool(config.experts, asker_approves=agent.asker_approves_questions)
            )
        tools = await registry(config.tool_rows, config.local_tools, added_tools)
        for function in config.client_tools:  # never in place of one of the agent's own
            tools.register(function)
        # Handoffs and questions are never allowed ahead.
        grantable = {row.name for row in config.tool_rows} - {t.name for t in added_tools}
        # Plans and panels get the history as it is.
        compaction = Compaction(
            turns=agent.max_history_turns,
            tokens=agent.max_history_tokens,
            summarizes=agent.summarizes_history,
            threshold=agent.summary_threshold / 100,
        )
        capabilities = [
            *tool_selection.tool_selection(config, run, len(tools.list_tools())),
            *([PreferredTools()] if agent.learns else []),
            *config.capabilities,
            *([compaction] if agent.mode == Agent.Mode.REACT else []),
            *([FirstRetrieval(SearchTool.name)] if agent.retrieves_first else []),
            *([FigureCheck()] if agent.checks_figures else []),
            *await result_caches.reply_cache(run, config),
            *await result_caches.result_cache(run, config, tools),
            Budget(payer_of(run, agent)),
            *_shared_capabilities(run, config, agent.name, attachments),
            Approvals(
                auto_execute=agent.auto_execute_tools,
                after_untrusted=cast(UntrustedPolicy, agent.after_untrusted),
                shows_plan=agent.shows_plan,
            ),
            *tool_grants.grants(run, agent.name, grantable),
        ]
        make: Callable[..., AgentRuntime] = AgentRuntime
        if agent.mode == Agent.Mode.PLAN:
            make = partial(
                Orchestrator,
                max_replans=agent.max_replans,
                roles=_agents_by_role(config.sub_agents),
                people=frozenset(name.lower() for name in config.experts),
            )
        elif agent.mode == Agent.Mode.PANEL:
            # The other half of the time is for merging the answers.
            seconds = agent.max_seconds / 2 if agent.max_seconds else None
            make = partial(Panel, merge=cast(MergeStrategy, agent.merge), most_seconds=seconds)
        team[agent.name] = _build_runtime(config, tools, make, agent.name, change(capabilities))
    return team


def _shared_capabilities(
    run: Run, config: AgentConfig, name: str, attachments: AttachmentStore
) -> list[Capability]:
    """Return what agents and workflows have alike."""
    agent = config.agent
    policy = standard_policy(
        agent.max_duplicate_tool_calls,
        agent.max_tool_calls_per_tool,
        tool_limits=config.limits,
        max_seconds=agent.max_seconds,
        max_tokens=agent.max_run_tokens,
        max_cost=agent.max_cost,
        owner=name,
        most_times=agent.max_raise if is_attended(run) else 0,  # it asks before it passes one
    )
    capabilities = [Termination(policy), Attachments(attachments), Citations()]
    return [*capabilities, Sampling()] if agent.allows_sampling else capabilities


def _build_runtime(
    config: AgentConfig,
    tools: ToolRegistry,
    make: Callable[..., AgentRuntime],
    name: str,
    capabilities: list[Capability],
) -> AgentRuntime:
    agent = config.agent
    return make(
        config.planners,
        tools,
        config.guardrails,
        FallbackStrategy(
            configured.TOOL_RETRIES.value,
            retry=RetryPolicy(max_retries=configured.MODEL_RETRIES.value),
            circuits=CIRCUITS,
        ),
        agent.max_steps,
        capabilities=capabilities,
        output=OutputSchema(agent.output_schema) if agent.output_schema is not None else None,
        name=name,
    )


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
