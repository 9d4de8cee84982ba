"""What the agents do with personal data, for the guardrails page."""

from dataclasses import dataclass
from typing import Any

from agents.console.guardrail_admin.personal_data import EXPLANATIONS
from agents.models import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyMode:
    """A way to treat personal data, and the agents that use it."""

    key: str
    label: str
    explanation: Any
    agents: list[Agent]


def privacy_modes() -> list[PrivacyMode]:
    """Return every mode with its agents."""
    rows = list(Agent.objects.filter(enabled=True))
    return [
        PrivacyMode(
            key=mode.value,
            label=str(mode.label),
            explanation=EXPLANATIONS[mode],
            agents=[row for row in rows if row.personal_data == mode],
        )
        for mode in Agent.PersonalData
    ]
