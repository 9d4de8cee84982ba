"""Which tools an agent's model is sent: its settings, its chat's last tools, their meaning."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from agents.db import database
from agents.engine.events import EventType
from agents.engine.tool import Tool
from agents.engine.tool_selection import SelectionLimits, ToolSelector, ToolText
from agents.installation import configured
from agents.knowledge import embeddings
from agents.models import Agent, AgentTool, Run, RunEvent

from .. import tool_reliability
from ..tool_factory import BUILT_IN_TOOLS
from ..tool_vectors import closest
from .config import AgentConfig
from .relations import pinned_tools

MIN_TOOLS = 9  # as many are sent anyway, see ToolSelector.applies_to
MEANING_SECONDS = 3.0  # then the tools are found by their words alone


def selector(config: AgentConfig, run: Run | None, count: int) -> ToolSelector | None:
    """Return the agent's policy; None if all tools are sent anyway."""
    agent = config.agent
    is_chosen = agent.tool_selection == Agent.ToolSelection.AUTO
    if not is_chosen or agent.mode != Agent.Mode.REACT or count < MIN_TOOLS:
        return None
    is_first = run is not None and run.agent_id == agent.pk
    return ToolSelector(
        limits(),
        pinned=config.pinned.union(BUILT_IN_TOOLS) | {tool.name for tool in _of_files(config)},
        success=tool_reliability.success_rates if agent.learns else None,
        rank_by_meaning=_rank_by_meaning if _may_embed(agent) else None,
        previous=partial(database.run, previous_tools, run) if run and is_first else None,
    )


def _may_embed(agent: Agent) -> bool:
    """Whether a question can be embedded: not at a provider if personal data is hidden."""
    model = embeddings.configured_model()
    is_here = model in {embeddings.LOCAL, embeddings.DEMO}
    is_hidden = agent.personal_data == Agent.PersonalData.HIDDEN
    return model != embeddings.OFF and (is_here or not is_hidden)


def limits() -> SelectionLimits:
    """Return the limits of the installation."""
    return SelectionLimits(
        tools=configured.SENT_TOOLS.value, tokens=configured.SENT_TOOL_TOKENS.value
    )


def pinned_names(links: Iterable[AgentTool]) -> frozenset[str]:
    """Return the tools that are always sent: by the agent's choice, and built-in ones."""
    return pinned_tools(links).union(BUILT_IN_TOOLS)


def _of_files(config: AgentConfig) -> list[Tool]:
    """Return the tools that no administrator gave the agent: they read the chat's files."""
    registered = {row.name for row in config.tool_rows}
    return [tool for tool in config.local_tools if tool.name not in registered]


def previous_tools(run: Run) -> Collection[str]:
    """Return the tools that the last run of the same chat was sent, if it chose among many."""
    if not run.topic:
        return ()
    earlier_runs = Run.objects.filter(topic=run.topic, agent=run.agent, pk__lt=run.pk)
    last_run = earlier_runs.order_by("-pk").values_list("pk", flat=True).first()
    started = RunEvent.objects.filter(run=last_run, type=EventType.RUN_STARTED).order_by("seq")
    data = started.values_list("data", flat=True).first() if last_run else None
    if not data or not data.get("unsent_tools"):
        return ()
    return [tool["function"]["name"] for tool in data["tools"]]


async def _rank_by_meaning(question: str, texts: Mapping[str, ToolText]) -> Sequence[str]:
    """Return the tools by meaning; nothing if the model doesn't answer in time."""
    whole_texts = {name: text.whole for name, text in texts.items()}
    try:
        async with asyncio.timeout(MEANING_SECONDS):
            return await asyncio.to_thread(closest, question, whole_texts)
    except (TimeoutError, embeddings.EmbeddingUnavailable):
        return ()
