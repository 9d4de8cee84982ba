"""The agent that answers if none was chosen."""

from django.db.models import QuerySet

from agents.db.configuration_rows import configuration_query
from agents.models import Agent

from .errors import NoAgentAvailable


def default_agent(user: int | None = None) -> Agent:
    """Return the default agent of this user."""
    for agent in default_candidates() if user is None else default_candidates_for(user):
        return agent
    raise NoAgentAvailable


@configuration_query
def default_candidates() -> QuerySet[Agent]:
    """Return the default agent, if there is one."""
    return Agent.objects.filter(enabled=True).order_by("-is_default", "pk")[:1]


@configuration_query
def default_candidates_for(user: int) -> QuerySet[Agent]:
    return Agent.objects.open_to(user).filter(enabled=True).order_by("-is_default", "pk")[:1]
