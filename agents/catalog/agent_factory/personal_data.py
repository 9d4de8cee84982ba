"""What an agent's personal data policy means for a run."""

from agents.engine.attachments import AttachmentStore
from agents.engine.loop import Events
from agents.engine.privacy import Pseudonymizer, redact
from agents.models import Agent, Run

from ..attachments import attachment_store
from .relations import DRAFT_KEY


def apply_redaction(run: Run, events: Events) -> Events:
    """Redact the events, if the agent stores no personal data."""
    return redact(events) if personal_data_policy(run) == Agent.PersonalData.UNKEPT else events


def run_attachment_store(run: Run) -> AttachmentStore:
    """Return one store for all agents of a run."""
    stores_data = personal_data_policy(run) != Agent.PersonalData.UNKEPT
    return attachment_store.build_store(run, stores_data=stores_data)


def pseudonymizer_for(run: Run, agent: Agent, shared: Pseudonymizer) -> Pseudonymizer | None:
    """Return the pseudonymizer: the first agent's policy applies to all that work for it."""
    policies = {agent.personal_data, personal_data_policy(run)}
    return shared if Agent.PersonalData.HIDDEN in policies else None


def personal_data_policy(run: Run) -> str | None:
    """Return the personal data policy of the run's agent or draft."""
    if run.is_draft_run:
        return run.overrides[DRAFT_KEY].get("personal_data")
    return None if run.agent is None else run.agent.personal_data
