"""One more reply of a finished run's model, for example a title."""

from agents.access import permissions
from agents.db import database
from agents.engine.guardrails import Guardrails
from agents.engine.loop import PlainReply, ask_once
from agents.engine.planner import ReActPlanner
from agents.engine.privacy import Pseudonymizer
from agents.engine.state import Message
from agents.models import Run

from .. import planner_factory
from .circuits import CIRCUITS
from .errors import AgentForbidden, NoAgentAvailable
from .guardrails import active_patterns, guardrails_from
from .personal_data import pseudonymizer_for


async def ask_model(run: Run, messages: list[Message], *, max_tokens: int) -> PlainReply:
    """Ask the model of a finished run once more, outside of it; raise an AgentError."""
    planners, guardrails = await database.run(_load_model, run)
    return await ask_once(planners, guardrails, CIRCUITS, messages, max_tokens=max_tokens)


def _load_model(run: Run) -> tuple[list[ReActPlanner], Guardrails]:
    agent = run.agent
    if agent is None or not agent.enabled:
        raise NoAgentAvailable("The agent of this run was disabled.")
    if permissions.is_agent_forbidden(agent.pk, run.user_id):
        raise AgentForbidden
    pseudonymizer = pseudonymizer_for(run, agent, Pseudonymizer())
    planners = planner_factory.build_planners(agent, run.model, run, pseudonymizer)
    return planners, guardrails_from(agent, active_patterns(run, agent))
