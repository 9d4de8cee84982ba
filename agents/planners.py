"""Rows → planners: which model an agent thinks with, by which road, with which deadlines."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from django.conf import settings

from agents.engine.discretion import Discretion
from agents.engine.planner import LLM, ReActPlanner
from agents.engine.stream import Deadlines
from agents.llm import discovery, tokens, windows
from agents.llm.demo_model import DemoModel
from agents.llm.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.roads import road
from agents.models import Agent

DEMO = "demo"
PACE = 0.06

INSTRUCTIONS = """\
You are {agent}, an assistant that thinks, uses tools and answers. Use a tool wherever it can
find out or work out what you need; never guess a figure that a tool can give. When you answer
from documents, cite the passages by their numbers in brackets. Answer in the language of the
question, in Markdown, and briefly."""


def models_of(agent: Agent) -> list[str]:
    """Its model, and those that it falls back to."""
    first = model_name(agent)
    return [first, *(name for name in agent.fallback_models.split() if name != first)]


def instructions(agent: Agent) -> str:
    return agent.instructions or INSTRUCTIONS.format(agent=agent.name)


def of(agent: Agent, model: str, discretion: Discretion | None = None) -> list[ReActPlanner]:
    """One for the model of the run, and one for each that the agent falls back to."""
    others = [name for name in agent.fallback_models.split() if name != model]
    return [_planner(agent, name, discretion) for name in [model, *others]]


def _planner(agent: Agent, model: str, discretion: Discretion | None) -> ReActPlanner:
    asked = llm(model)
    return ReActPlanner(
        asked,
        model,
        dialect=agent.dialect,
        instructions=instructions(agent),
        parameters={} if model == DEMO else {"max_tokens": agent.max_output_tokens},
        pace=0 if getattr(asked, "pace", 0) else PACE,
        deadlines=_deadlines(),
        window=windows.window(model),
        count_tokens=tokens.count,
        discretion=discretion,
    )


def _deadlines() -> Deadlines:
    environment = settings.ENVIRONMENT
    return Deadlines(
        slow=environment.model_slow_seconds,
        first=environment.model_first_seconds,
        between=environment.model_between_seconds,
        whole=environment.model_whole_seconds,
    )


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
