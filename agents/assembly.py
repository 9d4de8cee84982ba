"""Rows → engine values: agents, their models, their guardrails and their colleagues."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

from channels.db import database_sync_to_async
from django.conf import settings

from agents import toolset
from agents.engine.breaker import Circuits
from agents.engine.errors import AgentError
from agents.engine.events import Event
from agents.engine.fallback import FallbackStrategy
from agents.engine.guardrails import GuardrailAction, Guardrails, Pattern
from agents.engine.handoff import Handoff
from agents.engine.output import OutputSchema
from agents.engine.planner import LLM, ReActPlanner
from agents.engine.retry import RetryPolicy
from agents.engine.runtime import AgentRuntime, Events
from agents.engine.state import AgentState, Message
from agents.engine.stream import Deadlines
from agents.engine.termination import standard_policy
from agents.engine.tool import Tool, ToolRegistry
from agents.llm import discovery, tokens, windows
from agents.llm.demo_model import DemoModel
from agents.llm.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.roads import road
from agents.models import Agent, GuardrailPattern, Run, ToolRegistration
from agents.models.prepared import prepared

Registry = Callable[
    [Sequence[ToolRegistration], Iterable[Tool], Iterable[Tool]], Awaitable[ToolRegistry]
]

DEMO = "demo"
PACE = 0.06

INSTRUCTIONS = """\
You are {agent}, an assistant that thinks, uses tools and answers. Use a tool wherever it can
find out or work out what you need; never guess a figure that a tool can give. When you answer
from documents, cite the passages by their numbers in brackets. Answer in the language of the
question, in Markdown, and briefly."""

# How models and tools have been lately, for all runs of this process.
CIRCUITS = Circuits()


class NoAgent(AgentError):
    """No agent is switched on."""

    advice = "Switch one on in the admin console."


@dataclass(frozen=True)
class Parts:
    """What the rows say about an agent, and about those it may ask, read in one go."""

    agent: Agent
    planners: list[ReActPlanner]
    tools: list[ToolRegistration]
    own: list[Tool]
    patterns: list[GuardrailPattern]
    colleagues: list[Agent]


async def begin(run: Run) -> Events:
    """The events of a new run."""
    runtime = await build(run)
    return runtime.stream(run.query, _state(run.history))


async def resume(run: Run) -> Events:
    """The events of a run that has paused or was left behind, from there on."""
    runtime = await build(run)
    past = await database_sync_to_async(_past)(run)
    if not past:
        return runtime.stream(run.query, _state(run.history))
    return runtime.resume(past, _state(run.history))


async def rehearse(run: Run, registry: Registry) -> Events:
    """The events of a run whose tools do nothing, so that nobody is asked about them."""
    runtime = await build(run, registry, asks=False)
    return runtime.stream(run.query, _state(run.history))


async def build(
    run: Run, registry: Registry = toolset.registry, *, asks: bool = True
) -> AgentRuntime:
    """An agent as the rows describe it at this moment, and whoever it may ask.

    `registry` makes the tools of each of them.
    """
    everybody = await database_sync_to_async(_everybody)(run)
    team: dict[str, AgentRuntime] = {}
    for parts in everybody:
        handoffs = [_handoff(colleague, team) for colleague in parts.colleagues]
        tools = await registry(parts.tools, parts.own, handoffs)
        team[parts.agent.name] = _runtime(parts, tools, asks)
    return team[everybody[0].agent.name]


def _runtime(parts: Parts, tools: ToolRegistry, asks: bool) -> AgentRuntime:
    agent, (planner, *fallbacks) = parts.agent, parts.planners
    return AgentRuntime(
        planner,
        tools,
        _guardrails(parts),
        FallbackStrategy(),
        agent.max_steps,
        retry=RetryPolicy(max_retries=settings.ENVIRONMENT.model_retries),
        policy=standard_policy(
            agent.max_duplicate_tool_calls,
            agent.max_tool_calls_per_tool,
            max_seconds=agent.max_seconds,
            max_tokens=agent.max_run_tokens,
            max_cost=agent.max_cost,
        ),
        auto_execute_tools=agent.auto_execute_tools or not asks,
        output=OutputSchema(agent.output_schema) if agent.output_schema is not None else None,
        fallback_planners=fallbacks,
        circuits=CIRCUITS,
        name=agent.name,
    )


def models_of(agent: Agent) -> list[str]:
    """Its model, and those that it falls back to."""
    first = model_name(agent)
    return [first, *(name for name in agent.fallback_models.split() if name != first)]


def _planners(agent: Agent, model: str) -> list[ReActPlanner]:
    """One for the model of the run, and one for each that the agent falls back to."""
    others = [name for name in agent.fallback_models.split() if name != model]
    return [_planner(agent, name) for name in [model, *others]]


def _planner(agent: Agent, model: str) -> ReActPlanner:
    asked = llm(model)
    return ReActPlanner(
        asked,
        model,
        dialect=agent.dialect,
        instructions=agent.instructions or INSTRUCTIONS.format(agent=agent.name),
        parameters={} if model == DEMO else {"max_tokens": agent.max_output_tokens},
        pace=0 if getattr(asked, "pace", 0) else PACE,
        deadlines=_deadlines(),
        window=windows.window(model),
        count_tokens=tokens.count,
    )


def _deadlines() -> Deadlines:
    environment = settings.ENVIRONMENT
    return Deadlines(
        slow=environment.model_slow_seconds,
        first=environment.model_first_seconds,
        between=environment.model_between_seconds,
        whole=environment.model_whole_seconds,
    )


def _handoff(agent: Agent, team: dict[str, AgentRuntime]) -> Handoff:
    """Fetched when it is asked: agents may know each other, and are made one by one."""
    return Handoff(agent.name, lambda: team[agent.name], agent.description)


def default_agent() -> Agent:
    for agent in _first_agent():
        return agent
    raise NoAgent


@prepared
def _first_agent():
    return Agent.objects.filter(enabled=True).order_by("-is_default", "pk")[:1]


def model_name(agent: Agent) -> str:
    return agent.model or default_model().model


def llm(model: str) -> LLM:
    if model == DEMO:
        return DemoModel(settings.ENVIRONMENT.demo_delay)
    choice = default_model()
    key, url = (choice.api_key, choice.base_url) if model == choice.model else (None, None)
    forced = settings.ENVIRONMENT.model_road
    way = road(model, os.environ, base_url=url, api_key=key, forced=forced)
    return DirectModel(key, url, pace=PACE) if way == "direct" else LiteLLMModel(key, url)


_choosing = threading.Lock()


def default_model() -> discovery.Choice:
    """The model of this installation, found once."""
    with _choosing:
        return _default_model()


@lru_cache(maxsize=1)
def _default_model() -> discovery.Choice:
    """Found in a thread of its own, because the caller may be an event loop or not."""
    environment = settings.ENVIRONMENT
    key = environment.model_key
    choosing = discovery.choose(
        environment.model or None,
        environment.model_url or None,
        key.get_secret_value() if key else None,
        os.environ,
        probe=environment.model_discovery,
        own_port=environment.port,
    )
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, choosing).result()


def _everybody(run: Run) -> list[Parts]:
    """The agent of the run first, then all that can be reached from it."""
    if run.agent is None or not run.agent.enabled:
        raise NoAgent("The agent of this run was switched off.")
    patterns = _patterns()
    found: dict[int, Parts] = {}
    waiting = [run.agent]
    while waiting:
        agent = waiting.pop()
        if agent.pk not in found:
            colleagues = [other for other in _colleagues(agent.pk) if other != agent]
            model = run.model if agent.pk == run.agent_id else model_name(agent)
            planners, tools = _planners(agent, model), _tools(agent.pk)
            own = toolset.made(tools)
            found[agent.pk] = Parts(agent, planners, tools, own, patterns, colleagues)
            waiting += colleagues
    return list(found.values())


@prepared
def _patterns():
    return GuardrailPattern.objects.filter(enabled=True)


@prepared
def _colleagues(agent):
    return Agent.objects.filter(enabled=True, asked_by=agent)


@prepared
def _tools(agent):
    tools = ToolRegistration.objects.filter(enabled=True, agents=agent)
    return tools.select_related("server", "fallback")


def _guardrails(parts: Parts) -> Guardrails:
    patterns = [
        Pattern(
            pattern=row.pattern,
            name=row.name,
            stage=row.stage,
            action=GuardrailAction(row.action),
            message=row.message,
        )
        for row in parts.patterns
    ]
    agent = parts.agent
    return Guardrails(
        agent.max_input_tokens, agent.max_output_tokens, patterns, count_tokens=tokens.count
    )


def _past(run: Run) -> list[Event]:
    return [row.value for row in run.events.order_by("seq")]


def _state(history: list[Message]) -> AgentState:
    state = AgentState()
    for message in history:
        more = {k: v for k, v in message.items() if k not in {"role", "content"}}
        state.add_message(message["role"], message["content"], **more)
    return state
