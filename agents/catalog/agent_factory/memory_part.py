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


async def with_memory(run: Run, parts: AgentConfig) -> AgentConfig:
    """Return the configuration with the memories that fit the run's question."""
    if not parts.memories and parts.request is None:
        return parts
    count = parts.planners[0].count_tokens
    found = await recall(parts.memories, run.query, count)
    rules = guardrails_from(parts.agent, parts.patterns)
    used = [memory for memory in found if _passes(memory, rules)]
    note: dict[str, Any] = {"kind": StatusKind.MEMORY}
    note |= {"used": [memory.to_note() for memory in used]} if used else {}
    note |= parts.request.to_note() if parts.request else {}
    lines: Sequence[str] = [parts.request.line] if parts.request else []
    text = compose(used, lines)
    if not text:
        return parts
    planners = [one.with_recalled(text) for one in parts.planners]
    return replace(parts, planners=planners, notes=(*parts.notes, note))


def _passes(memory: RecalledMemory, rules: Guardrails) -> bool:
    """Whether the guardrails of a message accept the text, also those added since."""
    found = rules.without_length_limits().inspect(memory.text, "input")
    return not found.is_blocked and found.text == memory.text
