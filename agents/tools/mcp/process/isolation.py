"""Which calls share an MCP server's process or session, and its files."""

import hashlib
import re
from dataclasses import replace
from typing import Literal

from agents.engine.call_context import CallContext
from agents.engine.sentences import Sentence as _

from ..configuration.config import ServerConfig
from ..errors import ServerUnavailable

Isolation = Literal["shared", "person", "chat"]
# A name that is no path and never that of another one's lock file.
SAFE_ID = re.compile(r"(?!.*\.lock$)(?=.{1,64}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def scope_of(isolation: Isolation, context: CallContext, name: str) -> str:
    """Return whose instance a call uses; raise ServerUnavailable if that isn't known.

    It is a path, too: `people/12` or `chats/chat.7`. Without a chat, a person has an own
    instance.
    """
    if isolation == "shared":
        return ""
    if isolation == "chat" and context.chat_id:
        return chat_scope(context.chat_id)
    if context.user_id:
        return person_scope(context.user_id)
    raise ServerUnavailable(
        _(
            "%(name)s has a separate instance for each user, but the user of this call is "
            "unknown.",
            name=name,
        )
    )


def person_scope(user_id: object) -> str:
    return f"people/{_safe_id(str(user_id))}"


def chat_scope(chat_id: str) -> str:
    return f"chats/{_safe_id(chat_id)}"


def scoped_config(config: ServerConfig, scope: str) -> ServerConfig:
    """Return the configuration of one instance, with its own persistent folder."""
    if not scope or not config.home:
        return config
    return replace(config, home=f"{config.home}.{scope}")


def _safe_id(text: str) -> str:
    return text if SAFE_ID.fullmatch(text) else f"h-{hashlib.sha256(text.encode()).hexdigest()}"
