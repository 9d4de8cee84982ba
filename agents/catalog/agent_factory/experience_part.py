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


def load(run: Run, config: AgentConfig) -> tuple[Candidate, ...]:
    """Return the experiences that may fit, as far as the run's user can use what they name."""
    if not config.agent.learns:
        return ()
    names = {row.name for row in config.tool_rows} | {tool.name for tool in config.local_tools}
    names |= {sub_agent.handoff_tool_name for sub_agent in config.sub_agents}
    reach = Reach(tools=frozenset(names), collections=_collections(run, config.agent))
    return tuple(find_candidates(run, config.agent, reach))


def _collections(run: Run, agent: Agent) -> Any:
    """Return what reads the collections in reach, once and only if an experience has some."""
    topics = [f"{PROJECT_TOPIC_PREFIX}{run.project_id}"] if run.project_id else []
    return cache(lambda: search_scope(run, agent, topics).collections)


async def with_experiences(run: Run, config: AgentConfig) -> AgentConfig:
    """Return the configuration with the experiences that fit the run's question.

    They come after the history, so that what is before them stays the same for a cache.
    """
    if not config.agent.learns:
        return config
    candidates = await database.run(load, run, config)
    if not candidates:
        return config
    agent = config.agent
    count = config.planners[0].count_tokens
    recalled = await recall(candidates, run.query, count, agent.max_experience_tokens)
    guardrails = guardrails_from(agent, config.patterns)
    used = [experience for experience in recalled if _passes(experience, guardrails)]
    if not used:
        return config
    if not run.is_draft_run:
        await database.run(outcomes.record_use, run.pk, [experience.id for experience in used])
    note: dict[str, Any] = {"kind": StatusKind.EXPERIENCE}
    note["used"] = [experience.to_note() for experience in used]
    text = compose(used)
    planners = [planner.with_recalled(text) for planner in config.planners]
    return replace(config, planners=planners, notes=(*config.notes, note))


def _passes(experience: RecalledExperience, guardrails: Guardrails) -> bool:
    """Whether the guardrails of a message accept the text, also those added since."""
    text = f"{experience.question}\n{experience.text}"
    inspection = guardrails.without_length_limits().inspect(text, "input")
    return not inspection.is_blocked and inspection.text == text
