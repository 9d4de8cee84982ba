"""Which tools an agent's model is sent: its settings, its chat's last tools, their meaning."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from agents.db import database
from agents.db.installation import configured
from agents.engine.events import EventType
from agents.engine.loop import Capability, ToolSelection
from agents.engine.tool_selection import SelectionLimits, ToolSelector, ToolText
from agents.knowledge import embeddings
from agents.models import Agent, AgentTool, Run, RunEvent

from ..tools import tool_reliability
from ..tools.tool_factory import BUILT_IN_TOOLS
from ..tools.tool_vectors import closest
from .config import AgentConfig
from .relations import pinned_tools

MIN_TOOLS = 9  # as many are sent anyway, see ToolSelector.applies_to
MEANING_SECONDS = 3.0  # then the tools are found by their words alone


def tool_selection(config: AgentConfig, run: Run, count: int) -> list[Capability]:
    """Return the agent's selection of tools; nothing if all of them are sent anyway."""
    agent = config.agent
    is_chosen = agent.tool_selection == Agent.ToolSelection.AUTO
    if not is_chosen or agent.mode != Agent.Mode.REACT or count < MIN_TOOLS:
        return []
    is_first = run.agent_id == agent.pk
    # No administrator gave it these: they read the chat's files.
    registered = {row.name for row in config.tool_rows}
    file_tools = {tool.name for tool in config.local_tools if tool.name not in registered}
    # Where personal data is hidden, a question isn't embedded at a provider.
    embedding_model = embeddings.configured_model()
    is_here = embedding_model in {embeddings.LOCAL, embeddings.DEMO}
    is_hidden = agent.personal_data == Agent.PersonalData.HIDDEN
    may_embed = embedding_model != embeddings.OFF and (is_here or not is_hidden)
    selector = ToolSelector(
        limits(),
        pinned=config.pinned.union(BUILT_IN_TOOLS, file_tools),
        success=tool_reliability.success_rates if agent.learns else None,
        rank_by_meaning=_rank_by_meaning if may_embed else None,
        previous=partial(database.run, previous_tools, run) if is_first else None,
    )
    return [ToolSelection(selector)]


def limits() -> SelectionLimits:
    """Return the limits of the installation."""
    return SelectionLimits(
        tools=configured.SENT_TOOLS.value, tokens=configured.SENT_TOOL_TOKENS.value
    )


def pinned_names(links: Iterable[AgentTool]) -> frozenset[str]:
    """Return the tools that are always sent: by the agent's choice, and built-in ones."""
    return pinned_tools(links).union(BUILT_IN_TOOLS)


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
