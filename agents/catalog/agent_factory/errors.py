"""Why a run can't have its agent."""

from agents.engine.errors import AgentError
from agents.engine.sentences import Sentence as _


class NoAgentAvailable(AgentError):
    message = _("No agent is enabled.")

    advice = _("Enable one in the console.")


class AgentForbidden(AgentError):
    message = _("You no longer have access to this agent.")

    advice = _("Choose another agent, or contact your administrator.")
