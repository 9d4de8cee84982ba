"""Asking a person first: which calls wait, and what was said about them."""

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from .tool import Tool, ToolRegistry, specification
from .turn import ToolCall

Why = Literal["agent", "tool", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a person said about a call; other `arguments` than the model's are their own."""

    is_approved: bool
    arguments: str | None = None
    reason: str = ""

    def of(self, call: ToolCall) -> ToolCall:
        """The call as it was approved."""
        return call if self.arguments is None else replace(call, arguments=self.arguments)

    def told(self, observation: str) -> str:
        """What came of an approved call; the model has to know where it is not its own."""
        if self.arguments is None:
            return observation
        return f"(A person changed the arguments to {self.arguments})\n{observation}"

    @property
    def refusal(self) -> str:
        """What the model is told of a call that a person declined."""
        reason = f" They said: “{self.reason}”." if self.reason else ""
        return (
            f"Error: a person declined this call, so it was not made.{reason} "
            "Do not make it again; go on without it, or say what you would need."
        )

    @property
    def outcome(self) -> str:
        """What the model is told of a call that was cut off, and that a person saw to."""
        said = f" They said: “{self.reason}”." if self.reason else ""
        return f"A person says that this call was made; its result was lost.{said}"


class Asking:
    """Which calls wait for a person: those of tools that ask, or all of them."""

    def __init__(self, registry: ToolRegistry, auto_execute: bool = True) -> None:
        self.registry = registry
        self.auto_execute = auto_execute

    def why(self, call: ToolCall) -> Why | None:
        """None where nobody has to be asked, or where the call cannot be made anyway."""
        if not self.registry.has(call.name) or not isinstance(call.readable, dict):
            return None
        if not self.auto_execute:
            return "agent"
        asks: bool = getattr(self.registry.get(call.name), "needs_approval", False)
        return "tool" if asks else None


def digest(call: ToolCall, why: Why = "tool", seq: int = 0) -> str:
    """What a word is bound to: this question about this call with exactly these arguments.

    `seq` is the number of the question: what was said to one is no answer to another.
    """
    return _hashed([call.id, call.name, call.arguments, why, seq])


def fingerprint(tool: Tool) -> str:
    """The tool as a person was told of it: what it is called, takes and reaches."""
    return _hashed([specification(tool), getattr(tool, "reaches", "")])


def _hashed(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
