"""Which agents and tools are closed to a person: asked for every run, and so the short way."""

from dataclasses import dataclass

from agents.db.compiled_queries import prepared
from agents.models import Agent, ToolRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What somebody may not use, by the numbers of its rows."""

    agents: frozenset[int] = frozenset()
    tools: frozenset[int] = frozenset()


def closed_to(user: int | None) -> Closed:
    """Nothing is to whoever has no account, and works at the terminal."""
    if user is None:
        return Closed()
    return Closed(agents=frozenset(_agents(user)), tools=frozenset(_tools(user)))


@prepared
def _agents(user):
    return Agent.objects.closed_to(user).values_list("pk", flat=True)


@prepared
def _tools(user):
    return ToolRegistration.objects.closed_to(user).values_list("pk", flat=True)
