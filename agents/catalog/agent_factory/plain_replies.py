"""One more reply of a finished run's model, for example a title."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.access import permissions
from agents.engine.guardrails import Guardrails
from agents.engine.loop import AgentRuntime, PlainReply, ask_briefly, ask_once
from agents.engine.planner import ReActPlanner
from agents.engine.privacy import Pseudonymizer
from agents.engine.sentences import Sentence as _
from agents.engine.state import Message
from agents.models import Run

from ..language_models import planner_factory
from .circuits import CIRCUITS
from .errors import AgentForbidden, NoAgentAvailable
from .guardrails import active_patterns, guardrails_from
from .personal_data import pseudonymizer_for


@dataclass(frozen=True, slots=True)
class PlainModel:
    """The model of a finished run, to ask once more outside of it."""

    planners: Sequence[ReActPlanner]
    guardrails: Guardrails

    async def ask(self, messages: list[Message], *, max_tokens: int) -> PlainReply:
        """Return its reply; raise an AgentError."""
        return await ask_once(
            self.planners, self.guardrails, CIRCUITS, messages, max_tokens=max_tokens
        )

    async def ask_briefly(self, messages: list[Message], *, max_tokens: int) -> PlainReply:
        """Return a reply of a line, which is read at once; raise an AgentError."""
        return await ask_briefly(
            self.planners, self.guardrails, CIRCUITS, messages, max_tokens=max_tokens
        )


def keep_model(run: Run, runtime: AgentRuntime) -> None:
    """Keep what a run uses for one more reply; pseudonyms are valid in a run only."""
    planners = runtime.planners
    if all(planner.pseudonymizer is None for planner in planners):
        run.loaded_model = PlainModel(planners, runtime.guardrails.without_model_checks())


def load_model(run: Run, loaded: PlainModel | None = None) -> PlainModel:
    """Return the run's model; raise an AgentError if its user can no longer use it.

    `loaded` is what the run has just used.
    """
    agent = run.agent
    if agent is None or not agent.enabled:
        raise NoAgentAvailable(_("The agent of this run was disabled."))
    if permissions.is_agent_forbidden(agent.pk, run.user_id):
        raise AgentForbidden
    if loaded is not None:
        return loaded
    pseudonymizer = pseudonymizer_for(run, agent, Pseudonymizer())
    planners = planner_factory.build_planners(agent, run.model, run, pseudonymizer)
    return PlainModel(planners, guardrails_from(agent, active_patterns(run, agent)))
