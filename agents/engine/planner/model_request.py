"""What is asked of a model: messages, tools and parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agents.engine.guardrails.invisible import (
    strip_invisible_json,
    strip_invisible_message,
    strip_invisible_value,
)
from agents.engine.state import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Exactly what the model is sent, without invisible characters.

    `unsent` is how many of the latest attachments it isn't sent, by reason. With `by_schema`,
    the server makes sure that a text model's reply is JSON.
    """

    messages: list[Message]
    tools: list[dict[str, Any]] | None
    parameters: Mapping[str, Any]
    dropped: int = 0
    shortened: int = 0
    unsent: Mapping[str, int] = field(default_factory=dict)
    by_schema: bool = False

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        set_field("messages", list(map(strip_invisible_message, self.messages)))
        set_field("tools", strip_invisible_json(self.tools))
        set_field("parameters", strip_invisible_value(self.parameters))
