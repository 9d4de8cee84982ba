"""Adds to a run's question what is remembered for it, and notes why."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents.engine.events import StatusKind
from agents.engine.guardrails import Guardrails
from agents.memory import RecalledMemory, recall
from agents.memory.recall import compose
from agents.models import Run

from .config import AgentConfig
from .guardrails import guardrails_from


async def with_memory(run: Run, config: AgentConfig) -> AgentConfig:
    """Return the configuration with the memories that fit the run's question."""
    if not config.memories and config.request is None:
        return config
    count = config.planners[0].count_tokens
    recalled = await recall(config.memories, run.query, count)
    guardrails = guardrails_from(config.agent, config.patterns)
    used = [memory for memory in recalled if _passes(memory, guardrails)]
    note: dict[str, Any] = {"kind": StatusKind.MEMORY}
    note |= {"used": [memory.to_note() for memory in used]} if used else {}
    note |= config.request.to_note() if config.request else {}
    lines: Sequence[str] = [config.request.line] if config.request else []
    text = compose(used, lines)
    if not text:
        return config
    planners = [planner.with_recalled(text) for planner in config.planners]
    return replace(config, planners=planners, notes=(*config.notes, note))


def _passes(memory: RecalledMemory, guardrails: Guardrails) -> bool:
    """Whether the guardrails of a message accept the text, also those added since."""
    inspection = guardrails.without_length_limits().inspect(memory.text, "input")
    return not inspection.is_blocked and inspection.text == memory.text
