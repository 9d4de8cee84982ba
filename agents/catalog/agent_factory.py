"""Builds engine values from rows: agents with guardrails, tools and handoffs."""

from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import QuerySet

from agents.access import permissions
from agents.access.permissions import Restrictions
from agents.db import database
from agents.db.compiled_queries import compiled_query
from agents.engine.attachments import AttachmentStore
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType
from agents.engine.guardrails import GuardrailAction, Guardrails, Inspection, Pattern, Stage
from agents.engine.loop import (
    AgentRuntime,
    AskPersonTool,
    Events,
    FallbackStrategy,
    GrantCheck,
    Handoff,
    OutputSchema,
    PlainReply,
    ask_once,
    standard_policy,
)
from agents.engine.planner import ReActPlanner
from agents.engine.plans import (
    ExecutionPlan,
    MergeStrategy,
    Orchestrator,
    Panel,
    WorkflowRuntime,
    read_definition,
)
from agents.engine.privacy import Pseudonymizer, redact
from agents.engine.resilience import Circuits, RetryPolicy
from agents.engine.state import AgentState, Message
from agents.engine.tool import Tool, ToolRegistry
from agents.llm import tokens
from agents.models import (
    Agent,
    AgentStep,
    AgentTool,
    GuardrailPattern,
    Run,
    RunEvent,
    ToolRegistration,
    WorkflowVersion,
)

from . import (
    agent_spec,
    agent_versions,
    attachment_store,
    custom_instructions,
    planner_factory,
    tool_factory,
    tool_grants,
)

DRAFT_KEY = "tried"  # key of a test run's draft agent
# What a rerun or a user's choice can override.
OVERRIDABLE_FIELDS = ("instructions", "fallback_models", "effort", "temperature")
RegistryLoader = Callable[..., Awaitable[ToolRegistry]]  # like tool_factory.build_registry

# Circuit breakers of models and tools, shared by all runs of this process.
CIRCUITS = Circuits()


class NoAgentAvailable(AgentError):
    """No agent is enabled."""

    advice = "Enable one in the console."


class AgentForbidden(AgentError):
    """You no longer have access to this agent."""

    advice = "Choose another agent, or contact your administrator."


@dataclass(frozen=True)
class AgentConfig:
    """What the rows say about an agent and its handoffs, loaded at once."""

    agent: Agent
    planners: list[ReActPlanner]
    tools: list[ToolRegistration]
    own: list[Tool]
    patterns: list[GuardrailPattern]
    sub_agents: list[Agent]
    is_rerun: bool
    experts: tuple[str, ...] = ()  # groups of people it can ask
    limits: dict[str, int] = field(default_factory=dict)  # max calls per tool


async def start(run: Run) -> Events:
    """Return the events of a new run."""
    original = run.original
    runtime = await build(original)
    return _apply_redaction(run, runtime.stream(original.query, _build_state(original.history)))


async def resume(run: Run) -> Events:
    """Return the events of a paused or abandoned run, from there on."""
    runtime = await build(run)
    past_events, recorded = await database.run(_recorded_events, run)
    if recorded and run.origin_id is not None:
        copy = attachment_store.copy_attachments
        await database.run(copy, run.origin_id, run.pk, recorded)
    state = _build_state(run.history)
    if len(past_events) < len(recorded):
        return _apply_redaction(run, runtime.rerun(recorded, past_events, state))
    events = (
        runtime.resume(past_events, state) if past_events else runtime.stream(run.query, state)
    )
    return _apply_redaction(run, events)


async def dry_run(run: Run, registry: RegistryLoader) -> Events:
    """Return the events of a run whose tools do nothing, so that no approval is needed."""
    runtime = await build(run, registry, asks=False)
    return runtime.stream(run.query, _build_state(run.history))


async def ask_model(run: Run, messages: list[Message], *, max_tokens: int) -> PlainReply:
    """Ask the model of a finished run once more, outside of it; raise an AgentError."""
    planners, guardrails = await database.run(_load_model, run)
    return await ask_once(planners, guardrails, CIRCUITS, messages, max_tokens=max_tokens)


def _load_model(run: Run) -> tuple[list[ReActPlanner], Guardrails]:
    agent = run.agent
    if agent is None or not agent.enabled:
        raise NoAgentAvailable("The agent of this run was disabled.")
    if agent.pk in permissions.restrictions_for(run.user_id).agents:
        raise AgentForbidden
    pseudonymizer = _pseudonymizer(run, agent, Pseudonymizer())
    planners = planner_factory.build_planners(agent, run.model, run, pseudonymizer)
    return planners, _build_guardrails(agent, _active_patterns(run, agent))


def inspect_input(agent: Agent, text: str) -> Inspection:
    """Return what the agent's guardrails make of a question."""
    return _build_guardrails(agent, _patterns(agent.pk)).inspect(text, "input")


def _apply_redaction(run: Run, events: Events) -> Events:
    """Redact the events, if the agent stores no personal data."""
    return redact(events) if personal_data_policy(run) == Agent.PersonalData.UNKEPT else events


async def build(
    run: Run, registry: RegistryLoader = tool_factory.build_registry, *, asks: bool = True
) -> AgentRuntime:
    """Build an agent as the rows describe it now, with its handoffs.

    `registry` builds the tools of each of them.
    """
    if run.workflow_id is not None:
        return await _build_workflow(run, registry)
    everybody = await database.run(_load_team, run)
    team = await _build_team(everybody, registry, asks, _attachment_store(run), run)
    return team[everybody[0].agent.name]


async def _build_workflow(run: Run, registry: RegistryLoader) -> AgentRuntime:
    """Build a workflow with all tools and agents it names."""
    parts, plan, others = await database.run(_load_workflow, run)
    attachments = _attachment_store(run)
    team = await _build_team(others, registry, True, attachments)
    handoffs = [_handoff_tool(sub_agent, team, is_first=True) for sub_agent in parts.sub_agents]
    careful = {"asks_before_writing": True} if parts.is_rerun else {}
    tools = await registry(parts.tools, parts.own, [*handoffs, AskPersonTool()], **careful)
    make = partial(WorkflowRuntime, plan=plan, roles=_agents_by_role(parts.sub_agents))
    return _build_runtime(
        parts,
        tools,
        make=make,
        auto_execute=True,
        name=run.agent_name,
        attachments=attachments,
    )


def _attachment_store(run: Run) -> AttachmentStore:
    """Return one store for all agents of a run."""
    stores_data = personal_data_policy(run) != Agent.PersonalData.UNKEPT
    return attachment_store.build_store(run, stores_data=stores_data)


async def _build_team(
    everybody: Iterable[AgentConfig],
    registry: RegistryLoader,
    asks: bool,
    attachments: AttachmentStore,
    run: Run | None = None,
) -> dict[str, AgentRuntime]:
    """Build the agents; with `run`, its user's standing approvals apply."""
    team: dict[str, AgentRuntime] = {}
    for parts in everybody:
        agent = parts.agent
        more: list[Tool] = [_handoff_tool(sub_agent, team) for sub_agent in parts.sub_agents]
        # A plan can always ask a person, whatever tools its agent has.
        more += [_ask_person_tool(parts)] if agent.mode == Agent.Mode.PLAN else []
        # In a rerun, writes need approval: the user may not want them repeated.
        careful = {"asks_before_writing": True} if parts.is_rerun else {}
        tools = await registry(parts.tools, parts.own, more, **careful)
        team[agent.name] = _build_runtime(
            parts,
            tools,
            make=_runtime_factory(parts, asks),
            auto_execute=agent.auto_execute_tools or not asks,
            name=agent.name,
            attachments=attachments,
            grants=_grant_check(run, parts, more),
        )
    return team


def _grant_check(
    run: Run | None, parts: AgentConfig, more: Iterable[Tool]
) -> GrantCheck | None:
    if run is None or parts.is_rerun:
        return None
    others = {tool.name for tool in more}  # handoffs and questions are never allowed ahead
    names = {row.name for row in parts.tools} - others
    return tool_grants.grant_check(run, parts.agent.name, names)


def _ask_person_tool(parts: AgentConfig) -> AskPersonTool:
    return AskPersonTool(parts.experts, asker_approves=parts.agent.asker_approves_questions)


def _build_runtime(
    parts: AgentConfig,
    tools: ToolRegistry,
    *,
    make: Callable[..., AgentRuntime],
    auto_execute: bool,
    name: str,
    attachments: AttachmentStore,
    grants: GrantCheck | None = None,
) -> AgentRuntime:
    agent, (planner, *fallbacks) = parts.agent, parts.planners
    return make(
        planner,
        tools,
        _build_guardrails(parts.agent, parts.patterns),
        FallbackStrategy(),
        agent.max_steps,
        retry=RetryPolicy(max_retries=settings.ENVIRONMENT.model_retries),
        policy=standard_policy(
            agent.max_duplicate_tool_calls,
            agent.max_tool_calls_per_tool,
            tool_limits=parts.limits,
            max_seconds=agent.max_seconds,
            max_tokens=agent.max_run_tokens,
            max_cost=agent.max_cost,
        ),
        auto_execute_tools=auto_execute,
        output=OutputSchema(agent.output_schema) if agent.output_schema is not None else None,
        fallback_planners=fallbacks,
        circuits=CIRCUITS,
        attachments=attachments,
        allows_sampling=agent.allows_sampling,
        grants=grants,
        name=name,
    )


def _runtime_factory(parts: AgentConfig, asks: bool) -> Callable[..., AgentRuntime]:
    """Return the runtime for the agent's mode."""
    agent = parts.agent
    match agent.mode:
        case Agent.Mode.PLAN:
            return partial(Orchestrator, **_orchestrator_options(parts, asks))
        case Agent.Mode.PANEL:
            # The other half of the time is for merging the answers.
            seconds = agent.max_seconds / 2 if agent.max_seconds else None
            return partial(Panel, merge=cast(MergeStrategy, agent.merge), most_seconds=seconds)
    return AgentRuntime


def _orchestrator_options(parts: AgentConfig, asks: bool) -> dict[str, Any]:
    """Return the options of an agent that works by a plan."""
    return {
        "shows_plan": parts.agent.shows_plan and asks,
        "max_replans": parts.agent.max_replans,
        "roles": _agents_by_role(parts.sub_agents),
        "people": frozenset(name.lower() for name in parts.experts),
    }


def _agents_by_role(agents: Iterable[Agent]) -> dict[str, str]:
    """Return agents by role."""
    return {role: agent.name for agent in agents for role in agent.role_names}


def workflow_agent_name(workflow: WorkflowVersion) -> str:
    """Return the agent name of a workflow's runs."""
    return workflow.workflow.name[: Run._meta.get_field("agent_name").max_length]


def tool_names(agent: Agent, user: int | None = None) -> list[str]:
    """Return the tools and handoffs this user's agent can call."""
    closed = permissions.restrictions_for(user)
    tools = [one.tool.name for one in _tool_links(agent.pk) if one.tool.pk not in closed.tools]
    reachable = [other for other in _sub_agents(agent.pk) if other.pk not in closed.agents]
    return sorted([*tools, *(other.handoff_tool_name for other in reachable)])


def guardrail_names() -> list[str]:
    rows = GuardrailPattern.objects.filter(enabled=True)
    return list(rows.values_list("name", flat=True))


def _handoff_tool(
    agent: Agent, team: dict[str, AgentRuntime], *, is_first: bool = False
) -> Handoff:
    """Return a handoff that looks up its agent late, as agents can refer to each other."""
    return Handoff(agent.name, lambda: team[agent.name], agent.description, is_first=is_first)


def default_agent(user: int | None = None) -> Agent:
    """Return the default agent of this user."""
    for agent in default_candidates() if user is None else default_candidates_for(user):
        return agent
    raise NoAgentAvailable


@compiled_query
def default_candidates() -> QuerySet[Agent]:
    """Return the default agent, if there is one."""
    return Agent.objects.filter(enabled=True).order_by("-is_default", "pk")[:1]


@compiled_query
def default_candidates_for(user: int) -> QuerySet[Agent]:
    return Agent.objects.open_to(user).filter(enabled=True).order_by("-is_default", "pk")[:1]


def _load_team(run: Run) -> list[AgentConfig]:
    """Return the run's agent first, then all agents reachable from it."""
    if run.is_draft_run:
        closed = permissions.restrictions_for(run.user_id)
        return _load_reachable(run, [_resolve_draft(run).agent], closed, Pseudonymizer())
    if run.agent is None or not run.agent.enabled:
        raise NoAgentAvailable("The agent of this run was disabled.")
    closed = permissions.restrictions_for(run.user_id)
    if run.agent_id in closed.agents:
        raise AgentForbidden
    _record_version(run)
    return _load_reachable(
        run, [_apply_overrides(run.agent, run.overrides)], closed, Pseudonymizer()
    )


def _load_workflow(run: Run) -> tuple[AgentConfig, ExecutionPlan, list[AgentConfig]]:
    """Return the workflow's own configuration, its plan, and all reachable agents."""
    if run.agent is None or run.workflow is None:
        raise NoAgentAvailable("The agent of this run was disabled.")
    closed = permissions.restrictions_for(run.user_id)
    if run.agent_id in closed.agents:
        raise AgentForbidden
    _record_version(run)
    plan = read_definition(run.workflow.text).plan
    plan = replace(plan, parameters={**plan.parameters, **run.parameters})
    steps = list(plan.walk())
    named = [row for row in _enabled_tools() if row.name in {step.tool for step in steps}]
    tools = [row for row in named if row.pk not in closed.tools]
    agent_names, roles = {step.agent for step in steps}, {step.role.lower() for step in steps}
    agents = Agent.objects.filter(enabled=True).exclude(pk__in=closed.agents)
    sub_agents = [one for one in agents if one.name in agent_names or one.role_names & roles]
    agent, pseudonymizer = _apply_overrides(run.agent, run.overrides), Pseudonymizer()
    parts = AgentConfig(
        agent,
        planner_factory.build_planners(
            agent, run.model, run, _pseudonymizer(run, agent, pseudonymizer)
        ),
        tools,
        tool_factory.build_tools(tools),
        _active_patterns(run, agent),
        sub_agents,
        is_rerun=run.is_rerun and not run.is_continuation,
        limits=_tool_limits(_tool_links(agent.pk)),
    )
    return parts, plan, _load_reachable(run, list(sub_agents), closed, pseudonymizer)


def _resolve_draft(run: Run) -> agent_spec.ResolvedSpec:
    """Return the draft agent, which isn't saved."""
    resolved = agent_spec.resolve(run.overrides[DRAFT_KEY])
    resolved.agent.pk = run.agent_id
    return resolved


def _record_version(run: Run) -> None:
    """Record the agent's version at the start; a resumed run keeps it."""
    if not run.version:
        agent_versions.record(run)


def _load_reachable(
    run: Run, waiting: list[Agent], closed: Restrictions, pseudonymizer: Pseudonymizer
) -> list[AgentConfig]:
    """Load these agents and all they can hand off to, with the user's restrictions."""
    found: dict[int, AgentConfig] = {}
    while waiting:
        agent = waiting.pop()
        if agent.pk not in found:
            found[agent.pk] = parts = _load_config(run, agent, closed, pseudonymizer)
            waiting += parts.sub_agents
    return list(found.values())


def _load_config(
    run: Run, agent: Agent, closed: Restrictions, pseudonymizer: Pseudonymizer
) -> AgentConfig:
    is_first = agent.pk == run.agent_id
    # Chosen tools don't apply to an agent that a workflow calls.
    chosen = run.overrides.get("tools") if is_first and not run.workflow_id else None
    had, reachable = (
        _draft_relations(run) if is_first and run.is_draft_run else _saved_relations(run, agent)
    )
    links = [link for link in had if link.tool.pk not in closed.tools]
    links = [link for link in links if chosen is None or link.tool.name in chosen]
    tools = [link.configured_tool() for link in links]
    others = [other for other in reachable if other.pk not in closed.agents]
    sub_agents = [other for other in others if other != agent]
    own = tool_factory.build_tools(tools)
    experts = _expert_groups(run, agent) if _may_ask_people(agent, own) else ()
    for person in (tool for tool in own if isinstance(tool, AskPersonTool)):
        person.experts = experts
        person.asker_approves = agent.asker_approves_questions
    planners = planner_factory.build_planners(
        agent,
        run.model if is_first else planner_factory.model_name(agent),
        run,
        _pseudonymizer(run, agent, pseudonymizer),
    )
    patterns = _active_patterns(run, agent)
    if is_first and (about := custom_instructions.for_run(run, agent)):
        about = custom_instructions.screened(about, _build_guardrails(agent, patterns))
        planners = [one.with_instructions(one.instructions + about) for one in planners]
    return AgentConfig(
        agent,
        planners,
        tools,
        own,
        patterns,
        [other for other in sub_agents if chosen is None or other.handoff_tool_name in chosen],
        is_rerun=run.is_rerun and not run.is_continuation,
        experts=experts,
        limits=_tool_limits(links),
    )


def _saved_relations(run: Run, agent: Agent) -> tuple[list[AgentTool], list[Agent]]:
    """Return an agent's tools and handoffs; in a test run, handoffs to the draft."""
    reachable = _sub_agents(agent.pk)
    if run.is_draft_run:
        reachable = [
            _resolve_draft(run).agent if one.pk == run.agent_id else one for one in reachable
        ]
    return _tool_links(agent.pk), reachable


def _draft_relations(run: Run) -> tuple[list[AgentTool], list[Any]]:
    draft = _resolve_draft(run)
    tools = [link for link in draft.links if link.tool.enabled]
    return tools, [agent for agent in draft.many["handoffs"] if agent.enabled]


def _tool_limits(links: Iterable[AgentTool]) -> dict[str, int]:
    return {link.tool.name: link.max_calls for link in links if link.max_calls}


def _pseudonymizer(run: Run, agent: Agent, shared: Pseudonymizer) -> Pseudonymizer | None:
    """Return the pseudonymizer: the first agent's policy applies to all that work for it."""
    rules = {agent.personal_data, personal_data_policy(run)}
    return shared if Agent.PersonalData.HIDDEN in rules else None


def personal_data_policy(run: Run) -> str | None:
    """Return the personal data policy of the run's agent or draft."""
    if run.is_draft_run:
        return run.overrides[DRAFT_KEY].get("personal_data")
    return None if run.agent is None else run.agent.personal_data


def _active_patterns(run: Run, agent: Agent) -> list[GuardrailPattern]:
    off = run.overrides.get("guardrails_off", ())
    return [row for row in _patterns(agent.pk) if row.name not in off]


def _may_ask_people(agent: Agent, own: Iterable[Tool]) -> bool:
    is_planner = agent.mode == Agent.Mode.PLAN
    return is_planner or any(isinstance(tool, AskPersonTool) for tool in own)


def _expert_groups(run: Run, agent: Agent) -> tuple[str, ...]:
    """Return the groups the agent can ask."""
    if run.is_draft_run and agent.pk == run.agent_id:
        return tuple(group.name for group in _resolve_draft(run).many.get("experts", ()))
    groups = Group.objects.filter(agents_that_ask=agent.pk).order_by("name")
    return tuple(groups.values_list("name", flat=True))


def _apply_overrides(agent: Agent, overrides: dict[str, Any]) -> Agent:
    """Return the agent with a run's own settings; the row stays as it is."""
    own = {name: overrides[name] for name in OVERRIDABLE_FIELDS if name in overrides}
    changed = copy(agent) if own else agent
    vars(changed).update(own)
    return changed


@compiled_query
def _patterns(agent: int) -> QuerySet[GuardrailPattern]:
    return GuardrailPattern.objects.for_agent(agent)


@compiled_query
def _sub_agents(agent: int) -> QuerySet[Agent]:
    return Agent.objects.filter(enabled=True, asked_by=agent)


def _enabled_tools() -> QuerySet[ToolRegistration]:
    tools = ToolRegistration.objects.filter(enabled=True)
    return tools.select_related("server", "fallback")


@compiled_query
def _tool_links(agent: int) -> QuerySet[AgentTool]:
    links = AgentTool.objects.filter(agent=agent, tool__enabled=True)
    return links.select_related("tool__server", "tool__fallback")


def build_guardrails(agent: Agent) -> Guardrails:
    """Return an agent's guardrails, to check text outside a run."""
    return _build_guardrails(agent, _patterns(agent.pk))


def _build_guardrails(agent: Agent, rows: Iterable[GuardrailPattern]) -> Guardrails:
    patterns = [
        Pattern(
            pattern=row.pattern,
            name=row.name,
            stage=cast(Stage, row.stage),
            action=GuardrailAction(row.action),
            message=row.message,
            is_observed=row.is_observed,
            id=row.pk,
        )
        for row in rows
    ]
    return Guardrails(
        agent.max_input_tokens, agent.max_output_tokens, patterns, count_tokens=tokens.count
    )


def _recorded_events(run: Run) -> tuple[list[Event], list[Event]]:
    """Return the run's own events and those to replay first."""
    past_events = [row.value for row in run.events.order_by("seq")]
    if run.is_continuation:
        return past_events, _events_before_stop(run)
    if run.origin_step is None:
        return past_events, []
    first = AgentStep.objects.filter(run=run.origin_id, number=run.origin_step).first()
    if first is None or first.first_seq <= 2:  # only the question comes before it
        return past_events, []
    recorded = RunEvent.objects.filter(run=run.origin_id, seq__lt=first.first_seq)
    return past_events, [row.value for row in recorded.order_by("seq")]


def _events_before_stop(run: Run) -> list[Event]:
    """Return the origin's events without those of its stop."""
    events = [row.value for row in RunEvent.objects.filter(run=run.origin_id).order_by("seq")]
    remaining = [event for event in events if not _is_stop_event(event)]
    return [replace(event, seq=number) for number, event in enumerate(remaining, 1)]


STOPPED_STATUSES = {"cancelled", "unknown", "unstarted"}


def _is_stop_event(event: Event) -> bool:
    is_cut = event.type is EventType.STEP and event.data["status"] in STOPPED_STATUSES
    return is_cut or event.type is EventType.RUN_FINISHED


def _build_state(history: list[Message]) -> AgentState:
    state = AgentState()
    for message in history:
        more = {k: v for k, v in message.items() if k not in {"role", "content"}}
        state.add_message(message["role"], message["content"], **more)
    return state
