"""Which version of an agent an experiment tests."""

from django.utils.translation import gettext as _

from agents.catalog import agent_spec
from agents.catalog.agent_spec import AgentSpec
from agents.console.agent_admin.agent_editor import draft_changes, draft_state, drafts
from agents.models import Agent

from ..errors import ExperimentRejected
from ..models import Experiment

Target = Experiment.Target


def tested_agent(pk: int | None, spec: AgentSpec) -> Agent:
    """Return the agent with the settings that are tested, which aren't saved."""
    agent = agent_spec.resolve(spec).agent
    agent.pk = pk
    return agent


def published(agent: Agent) -> tuple[AgentSpec, int | None]:
    """Return the agent's current settings and their version."""
    return agent_spec.describe(agent), agent.version or None


def version(agent: Agent, number: int) -> tuple[AgentSpec, int]:
    """Return the settings of an earlier version; raise ExperimentRejected."""
    agent_version = agent.versions.filter(number=number).first()
    if agent_version is None:
        raise ExperimentRejected(
            _("%(agent)s has no version %(number)d.") % {"agent": agent.name, "number": number}
        )
    missing = agent_spec.resolve(agent_version.snapshot).missing
    if missing:
        raise ExperimentRejected(" ".join(missing))
    return agent_version.snapshot, number


def has_draft(agent: Agent) -> bool:
    """Whether the agent has unpublished changes."""
    return bool(drafts.open_draft(agent).changes)


def draft(agent: Agent) -> AgentSpec:
    """Return the settings of the agent's unpublished draft; raise ExperimentRejected."""
    edited = drafts.open_draft(agent)
    if not edited.changes:
        raise ExperimentRejected(_("%(agent)s has no draft.") % {"agent": agent.name})
    if wrong := draft_state.labelled_errors(edited):
        sentences = " ".join(f"{label}: {sentence}" for _name, label, sentence in wrong)
        raise ExperimentRejected(
            _("The draft has errors. Fix them first. %(errors)s") % {"errors": sentences}
        )
    return draft_changes.draft_spec(edited.form)
