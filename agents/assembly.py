"""Rows → engine values. The only file that speaks both languages."""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from agents import knowledge
from agents.engine.errors import AgentError
from agents.engine.events import Event
from agents.engine.fallback import FallbackStrategy
from agents.engine.function import FunctionTool
from agents.engine.guardrails import GuardrailAction, Guardrails, Pattern
from agents.engine.planner import LLM, ReActPlanner
from agents.engine.retry import RetryPolicy
from agents.engine.runtime import AgentRuntime, Events
from agents.engine.state import AgentState, Message
from agents.engine.termination import standard_policy
from agents.engine.tool import Tool, ToolRegistry
from agents.llm import discovery, tokens, windows
from agents.llm.demo_model import DemoModel
from agents.llm.litellm_model import LiteLLMModel
from agents.models import Agent, GuardrailPattern, Run, ToolRegistration
from agents.tools.calculator import CalculatorTool
from agents.tools.database import DatabaseTool
from agents.tools.search import SearchTool

DEMO = "demo"
PACE = 0.05

INSTRUCTIONS = """\
You are {agent}, an assistant that thinks, uses tools and answers. Use a tool wherever it can
find out or work out what you need; never guess a figure that a tool can give. When you answer
from documents, cite the passages by their numbers in brackets. Answer in the language of the
question, in Markdown, and briefly."""

BUILT_IN: dict[str, Callable[[], Tool]] = {
    "calculator": CalculatorTool,
    "database": lambda: DatabaseTool(f"sqlite:///{settings.SAMPLE_DATABASE}"),
    "search": lambda: SearchTool(knowledge.asearch),
}


@cache
def from_code() -> dict[str, FunctionTool]:
    """The tools of this installation's own modules, by name."""
    modules = [_module(name) for name in settings.TOOL_MODULES]
    found = [v for m in modules for v in vars(m).values() if isinstance(v, FunctionTool)]
    names = Counter([*BUILT_IN, *(tool.name for tool in found)])
    for name in [name for name, times in names.items() if times > 1]:
        raise ImproperlyConfigured(f"ASHIATO_TOOLS: two tools are called {name!r}.")
    return {tool.name: tool for tool in found}


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        sentence = f"ASHIATO_TOOLS: the module {name!r} cannot be imported: {error}."
        raise ImproperlyConfigured(sentence) from error


def tool_names() -> list[str]:
    return sorted([*BUILT_IN, *from_code()])


class NoAgent(AgentError):
    """No agent is switched on."""

    advice = "Switch one on in the admin console."


@dataclass(frozen=True)
class Parts:
    """What the rows say about a run, read in one go."""

    agent: Agent
    tools: list[ToolRegistration]
    patterns: list[GuardrailPattern]


async def begin(run: Run) -> Events:
    """The events of a new run."""
    runtime = await build(run)
    return runtime.stream(run.query, _state(run.history))


async def resume(run: Run) -> Events:
    """The events of a run that has paused, from there on."""
    runtime = await build(run)
    past = await database_sync_to_async(_past)(run)
    return runtime.resume(past, _state(run.history))


async def build(run: Run) -> AgentRuntime:
    """An agent as the rows describe it at this moment."""
    parts = await database_sync_to_async(_parts)(run)
    agent = parts.agent
    planner = ReActPlanner(
        llm(run.model),
        run.model,
        dialect=agent.dialect,
        instructions=agent.instructions or INSTRUCTIONS.format(agent=agent.name),
        parameters={} if run.model == DEMO else {"max_tokens": agent.max_output_tokens},
        pace=PACE,
        window=await asyncio.to_thread(windows.window, run.model),
        count_tokens=tokens.count,
    )
    return AgentRuntime(
        planner,
        await asyncio.to_thread(_registry, parts.tools),
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
        auto_execute_tools=agent.auto_execute_tools,
        name=agent.name,
    )


def default_agent() -> Agent:
    agents = Agent.objects.filter(enabled=True)
    agent = agents.order_by("-is_default", "pk").first()
    if agent is None:
        raise NoAgent
    return agent


def model_name(agent: Agent) -> str:
    return agent.model or default_model().model


def llm(model: str) -> LLM:
    if model == DEMO:
        return DemoModel(settings.ENVIRONMENT.demo_delay)
    choice = default_model()
    if model == choice.model:
        return LiteLLMModel(choice.api_key, choice.base_url)
    return LiteLLMModel()


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


def _parts(run: Run) -> Parts:
    agent = run.agent
    if agent is None or not agent.enabled:
        raise NoAgent("The agent of this run was switched off.")
    return Parts(
        agent,
        list(agent.tools.filter(enabled=True)),
        list(GuardrailPattern.objects.filter(enabled=True)),
    )


def _registry(rows: list[ToolRegistration]) -> ToolRegistry:
    return ToolRegistry(_tool(row) for row in rows if row.name in tool_names())


def _tool(row: ToolRegistration) -> Any:
    own = from_code()
    tool: Any = copy(own[row.name]) if row.name in own else BUILT_IN[row.name]()
    tool.timeout = row.timeout
    if row.description:
        tool.description = row.description
    if row.effect:
        tool.effect = row.effect
    if row.approval != ToolRegistration.Approval.TOOL:
        tool.needs_approval = row.approval == ToolRegistration.Approval.ALWAYS
    return tool


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
