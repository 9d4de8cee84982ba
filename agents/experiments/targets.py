"""Which version of an agent an experiment tests."""

from django.utils.translation import gettext as _

from agents.catalog import agent_spec
from agents.catalog.agent_spec import AgentSpec
from agents.models import Agent

from .errors import ExperimentRejected
from .models import Experiment

Target = Experiment.Target


def published(agent: Agent) -> tuple[AgentSpec, int | None]:
    """Return the agent's current settings and their version."""
    return agent_spec.describe(agent), agent.version or None


def version(agent: Agent, number: int) -> tuple[AgentSpec, int]:
    """Return the settings of an earlier version; raise ExperimentRejected."""
    found = agent.versions.filter(number=number).first()
    if found is None:
        raise ExperimentRejected(
            _("%(agent)s has no version %(number)d.") % {"agent": agent.name, "number": number}
        )
    missing = agent_spec.resolve(found.snapshot).missing
    if missing:
        raise ExperimentRejected(" ".join(missing))
    return found.snapshot, number


def draft(agent: Agent) -> AgentSpec:
    """Return the settings of the agent's unpublished draft; raise ExperimentRejected."""
    raise ExperimentRejected(_("%(agent)s has no draft.") % {"agent": agent.name})
