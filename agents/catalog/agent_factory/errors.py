"""Why a run can't have its agent."""

from agents.engine.errors import AgentError


class NoAgentAvailable(AgentError):
    """No agent is enabled."""

    advice = "Enable one in the console."


class AgentForbidden(AgentError):
    """You no longer have access to this agent."""

    advice = "Choose another agent, or contact your administrator."
