"""Agent cards: how a program finds out what can be asked here, and how."""

from collections.abc import Iterable
from typing import Any

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, TransportProtocol
from django.http import HttpRequest

from agents.models import Agent
from agents.web import branding
from agents.web.origin import origin_of

# Any other file can be sent, too.
INPUT_MODES = ["text/plain", "application/json", "image/png", "image/jpeg", "application/pdf"]
OUTPUT_MODES = ["text/plain", "application/json", "image/png", "image/jpeg"]
# Of the cards: agents have versions of their own.
CARD_VERSION = "1.0.0"
DESCRIPTION = "Agents of this installation. They answer by thinking, acting and observing."
# What everybody can read names no agent.
PUBLIC_SKILL = AgentSkill(
    id="ask",
    name="Ask",
    description="Ask the default agent. With an API key, the extended card lists all agents.",
    tags=["agent"],
)


def public_card(request: HttpRequest) -> AgentCard:
    """Return the card of the installation, which reveals nothing about its agents."""
    return _card(request, "", branding.current().name, DESCRIPTION, [PUBLIC_SKILL])


def extended_card(request: HttpRequest, agents: Iterable[Agent]) -> AgentCard:
    """Return the card of the installation with the agents that the key's user can ask."""
    skills = [_skill(agent) for agent in agents]
    return _card(request, "", branding.current().name, DESCRIPTION, skills)


def agent_card(request: HttpRequest, agent: Agent) -> AgentCard:
    return _card(request, agent.name, agent.name, agent.description, [_skill(agent)])


def as_json(card: AgentCard) -> dict[str, Any]:
    """Return the card with what clients of version 0.3 read in it."""
    return agent_card_to_dict(card)


def _skill(agent: Agent) -> AgentSkill:
    return AgentSkill(
        id=agent.name,
        name=agent.name,
        description=agent.description or agent.name,
        tags=["agent"],
    )


def _card(
    request: HttpRequest, path: str, name: str, description: str, skills: list[AgentSkill]
) -> AgentCard:
    url = f"{origin_of(request)}/a2a/{path}"
    interfaces = [
        AgentInterface(
            url=url if binding is TransportProtocol.JSONRPC else url.rstrip("/"),
            protocol_binding=binding.value,
            protocol_version=version,
        )
        for version in (PROTOCOL_VERSION_1_0, PROTOCOL_VERSION_0_3)
        for binding in (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON)
    ]
    key = HTTPAuthSecurityScheme(scheme="bearer", description="An API key: ash_…")
    return AgentCard(
        name=name,
        description=description or name,
        version=CARD_VERSION,
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(
            streaming=True, push_notifications=True, extended_agent_card=True
        ),
        security_schemes={"key": SecurityScheme(http_auth_security_scheme=key)},
        security_requirements=[SecurityRequirement(schemes={"key": StringList()})],
        default_input_modes=INPUT_MODES,
        default_output_modes=OUTPUT_MODES,
        skills=skills,
    )
