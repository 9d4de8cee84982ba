"""Which agents and tools a user can't use; cached because every run needs it."""

from dataclasses import dataclass

from django.db.models import QuerySet

from agents.db.configuration_rows import configuration_query
from agents.models import Agent, ToolRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """What a user can't use, by row ids."""

    agents: frozenset[int] = frozenset()
    tools: frozenset[int] = frozenset()


def restrictions_for(user: int | None) -> Restrictions:
    """Return the restrictions of a user; none without an account, as in a terminal."""
    if user is None:
        return Restrictions()
    return Restrictions(
        agents=frozenset(_forbidden_agents(user)), tools=frozenset(_forbidden_tools(user))
    )


def is_agent_forbidden(agent: int, user: int | None) -> bool:
    """Whether a user can't use this agent."""
    return user is not None and agent in _forbidden_agents(user)


@configuration_query
def _forbidden_agents(user: int) -> QuerySet[Agent, int]:
    return Agent.objects.closed_to(user).values_list("pk", flat=True)


@configuration_query
def _forbidden_tools(user: int) -> QuerySet[ToolRegistration, int]:
    return ToolRegistration.objects.closed_to(user).values_list("pk", flat=True)
