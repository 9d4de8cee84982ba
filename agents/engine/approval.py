"""Asking a person first: which calls wait, and what was said about them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal, Self

from .tool import Effect, Tool, ToolInput, ToolRegistry, ToolResult, specification
from .turn import ToolCall

Why = Literal["agent", "tool", "unknown", "plan", "step", "question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a person said about a call; other `arguments` than the model's are their own."""

    is_approved: bool
    arguments: str | None = None
    reason: str = ""
    by: str = ""

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        return cls(
            is_approved=said["is_approved"],
            arguments=said["arguments"],
            reason=said["reason"],
            by=said.get("by_name", ""),
        )

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

    def reply(self, why: "Why") -> ToolResult:
        """What comes of a question to a person: their answer, or that there is none."""
        who = self.by or "A person"
        said = f" They said: “{self.reason}”." if self.reason else ""
        if not self.is_approved:
            return ToolResult(error=f"{who} declined.{said}", mendable=True)
        return ToolResult(self.reason if why == "question" else f"{who} approved.{said}")

    @property
    def outcome(self) -> str:
        """What the model is told of a call that was cut off, and that a person saw to."""
        said = f" They said: “{self.reason}”." if self.reason else ""
        return f"A person says that this call was made; its result was lost.{said}"


class AskPerson:
    """The tool with which an agent, or a plan, asks a person; the run waits for the answer.

    One that does not wait is called like any other tool, and knows the answer.
    """

    name = "ask_person"
    waits = True
    description = (
        "Ask a person, and wait for the answer: where you need to know what only people know, "
        "or somebody has to decide. Takes long: find out yourself what you can."
    )
    effect: Effect = "read"
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "question": {
                "type": "string",
                "description": "The question, with all that is needed to answer it: "
                "whoever reads it has not seen this conversation.",
            },
            "role": {
                "type": "string",
                "description": "Whose expertise is needed, such as legal. "
                "Leave it out to ask the person you work for.",
            },
        },
        "required": ["question"],
    }

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return ToolResult(error="There is nobody to ask here.", mendable=True)


class Asking:
    """Which calls wait for a person: those of tools that ask, or all of them."""

    def __init__(self, registry: ToolRegistry, auto_execute: bool = True) -> None:
        self.registry = registry
        self.auto_execute = auto_execute

    def why(self, call: ToolCall) -> Why | None:
        """None where nobody has to be asked, or where the call cannot be made anyway."""
        if not self.registry.has(call.name) or not isinstance(call.readable, dict):
            return None
        tool = self.registry.get(call.name)
        if isinstance(tool, AskPerson) and tool.waits:
            return "step" if call.readable.get("approves") else "question"
        if not self.auto_execute:
            return "agent"
        asks: bool = getattr(tool, "needs_approval", False)
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
