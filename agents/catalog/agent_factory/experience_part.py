"""Adds to an agent's instructions what similar runs have taught it, and notes which."""

from dataclasses import replace
from functools import cache
from typing import Any

from agents.db import database
from agents.engine.events import StatusKind
from agents.engine.guardrails import Guardrails
from agents.learning import Reach, RecalledExperience, outcomes, recall
from agents.learning.candidates import Candidate, find_candidates
from agents.learning.recall import compose
from agents.models import Agent, Run
from agents.models.collections import PROJECT_TOPIC_PREFIX

from .config import AgentConfig
from .guardrails import guardrails_from
from .relations import search_scope


def load(run: Run, parts: AgentConfig) -> tuple[Candidate, ...]:
    """Return the experiences that may fit, as far as the run's user can use what they name."""
    if not parts.agent.learns:
        return ()
    names = {row.name for row in parts.tools} | {tool.name for tool in parts.own}
    names |= {other.handoff_tool_name for other in parts.sub_agents}
    reach = Reach(tools=frozenset(names), collections=_collections(run, parts.agent))
    return tuple(find_candidates(run, parts.agent, reach))


def _collections(run: Run, agent: Agent) -> Any:
    """Return what reads the collections in reach, once and only if an experience has some."""
    topics = [f"{PROJECT_TOPIC_PREFIX}{run.project_id}"] if run.project_id else []
    return cache(lambda: search_scope(run, agent, topics).collections)


async def with_experiences(run: Run, parts: AgentConfig) -> AgentConfig:
    """Return the configuration with the experiences that fit the run's question.

    They come after the history, so that what is before them stays the same for a cache.
    """
    if not parts.agent.learns:
        return parts
    candidates = await database.run(load, run, parts)
    if not candidates:
        return parts
    agent, count = parts.agent, parts.planners[0].count_tokens
    found = await recall(candidates, run.query, count, agent.max_experience_tokens)
    rules = guardrails_from(agent, parts.patterns)
    used = [one for one in found if _passes(one, rules)]
    if not used:
        return parts
    if not run.is_draft_run:
        await database.run(outcomes.record_use, run.pk, [one.id for one in used])
    note: dict[str, Any] = {"kind": StatusKind.EXPERIENCE}
    note["used"] = [one.to_note() for one in used]
    text = compose(used)
    planners = [one.with_recalled(text) for one in parts.planners]
    return replace(parts, planners=planners, notes=(*parts.notes, note))


def _passes(one: RecalledExperience, rules: Guardrails) -> bool:
    """Whether the guardrails of a message accept the text, also those added since."""
    text = f"{one.question}\n{one.text}"
    found = rules.without_length_limits().inspect(text, "input")
    return not found.is_blocked and found.text == text
