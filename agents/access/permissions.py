"""Which agents and tools are closed to a person: asked for every run, and so the short way."""

from dataclasses import dataclass

from agents.db.compiled_queries import compiled_query
from agents.models import Agent, ToolRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """What somebody may not use, by the numbers of its rows."""

    agents: frozenset[int] = frozenset()
    tools: frozenset[int] = frozenset()


def restrictions_for(user: int | None) -> Restrictions:
    """Nothing is to whoever has no account, and works at the terminal."""
    if user is None:
        return Restrictions()
    return Restrictions(
        agents=frozenset(_forbidden_agents(user)), tools=frozenset(_forbidden_tools(user))
    )


@compiled_query
def _forbidden_agents(user):
    return Agent.objects.closed_to(user).values_list("pk", flat=True)


@compiled_query
def _forbidden_tools(user):
    return ToolRegistration.objects.closed_to(user).values_list("pk", flat=True)
