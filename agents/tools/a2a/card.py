"""The card of an agent elsewhere: what it can do, and where it is called."""

import json
from dataclasses import dataclass
from typing import Any

import httpx2

from agents.engine.sentences import Sentence as _

from ..egress import EgressRefused, validate_url

CARD_PATH = "/.well-known/agent-card.json"
VERSION = "1."
MAX_DESCRIPTION_CHARS = 2_000
MAX_SKILLS = 20
MAX_SKILL_CHARS = 300
MAX_URL_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCard:
    """An agent as it describes itself, with the address of its JSON-RPC."""

    name: str
    description: str
    url: str
    tenant: str
    streams: bool


def read_card(content: bytes, card_url: str) -> RemoteCard:
    """Return the card; raise ValueError if the agent can't be called.

    It must be called where its card is, because the key is sent there.
    """
    try:
        card = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(_("The agent card isn't JSON.")) from error
    if not isinstance(card, dict) or not _text(card.get("name")):
        raise ValueError(_("This isn't an agent card: it has no name."))
    interface = _find_interface(card)
    url = _text(interface.get("url"))[: MAX_URL_CHARS + 1]
    if len(url) > MAX_URL_CHARS:
        raise ValueError(_("The agent card has a URL that is too long."))
    try:
        is_same = _origin(validate_url(url)) == _origin(validate_url(card_url))
    except EgressRefused as refusal:
        message = _("The agent card has a URL that can't be used: %(why)s", why=refusal)
        raise ValueError(message) from refusal
    if not is_same:
        raise ValueError(_("The agent isn't on the host of its card, so its key isn't sent."))
    capabilities = card.get("capabilities")
    streams = isinstance(capabilities, dict) and capabilities.get("streaming") is True
    return RemoteCard(
        name=_text(card["name"]),
        description=_describe(card),
        url=url,
        tenant=_text(interface.get("tenant")),
        streams=streams,
    )


def _find_interface(card: dict[str, Any]) -> dict[str, Any]:
    interfaces = card.get("supportedInterfaces")
    for interface in interfaces if isinstance(interfaces, list) else ():
        if (
            isinstance(interface, dict)
            and interface.get("protocolBinding") == "JSONRPC"
            and _text(interface.get("protocolVersion")).startswith(VERSION)
        ):
            return interface
    raise ValueError(_("The agent doesn't offer version 1 of A2A over JSON-RPC."))


def _describe(card: dict[str, Any]) -> str:
    """Return what the agent says it can do, for the model that may call it."""
    lines = [_text(card.get("description"))]
    skills = card.get("skills")
    for skill in skills[:MAX_SKILLS] if isinstance(skills, list) else ():
        if isinstance(skill, dict):
            line = f"- {_text(skill.get('name'))}: {_text(skill.get('description'))}"
            lines.append(line[:MAX_SKILL_CHARS])
    return "\n".join(filter(None, lines))[:MAX_DESCRIPTION_CHARS]


def _origin(url: httpx2.URL) -> tuple[str, bytes]:
    return url.scheme, url.netloc


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
