"""A scripted model and tool for testing agents without a provider or network."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from . import call_context
from .call_context import CallContext
from .tool import TEXT_INPUT_SCHEMA, Effect, ToolInput, ToolResult


@dataclass(frozen=True)
class Call:
    """A tool call; arguments that are text are sent as they are, even if they aren't JSON."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True)
class Says:
    """One turn: a thought and calls, or an answer."""

    thought: str = ""
    calls: tuple[Call, ...] = ()
    answer: str = ""

    @classmethod
    def call(cls, name: str, thought: str = "I need a tool.", **arguments: Any) -> "Says":
        return cls(thought, (Call(name, arguments),))


class ScriptedModel:
    """Plays its script turn by turn, native or as ReAct text, and records the requests."""

    def __init__(self, *script: Says | Exception, dialect: str = "native") -> None:
        self.script = list(script)
        self.dialect = dialect
        self.requests: list[dict[str, Any]] = []

    async def stream(self, **request: Any) -> AsyncIterator[dict[str, Any]]:
        self.requests.append(request)
        if not self.script:
            raise AssertionError("The script is used up.")
        says = self.script.pop(0)
        if isinstance(says, Exception):
            raise says
        if self.dialect == "react":
            text = f"Thought: {says.thought}\n" if says.thought else ""
            for call in says.calls:
                text += f"Action: {call.name}\nAction Input: {_arguments(call)}\n"
            if says.answer:
                text += f"Final Answer: {says.answer}"
            chunks = [*_content_chunks(text), finish("stop")]
        else:
            chunks = [delta(reasoning_content=says.thought)] if says.thought else []
            chunks += _content_chunks(says.answer)
            for index, call in enumerate(says.calls):
                function = {"name": call.name, "arguments": _arguments(call)}
                tool_call = {"index": index, "id": f"c{index}", "function": function}
                chunks.append(delta(tool_calls=[tool_call]))
            chunks.append(finish("tool_calls" if says.calls else "stop"))
        for chunk in chunks:
            yield chunk

    def assert_used_up(self) -> None:
        if self.script:
            raise AssertionError(f"These turns were never asked for: {self.script}")


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def finish(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def _content_chunks(text: str) -> list[dict[str, Any]]:
    """Return the text in one chunk per word."""
    return [delta(content=token) for token in re.findall(r"[^ ]* |[^ ]+\Z", text)]


def _arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


class ContextTool:
    """A tool that runs a function with the context of its call, and returns its text."""

    description = "Runs a test."
    parameters = TEXT_INPUT_SCHEMA

    def __init__(
        self,
        work: Callable[[CallContext], Awaitable[str]],
        name: str = "work",
        *,
        effect: Effect = "read",
        timeout: float | None = None,
    ) -> None:
        self.work = work
        self.name = name
        self.effect = effect
        self.timeout = timeout
        self.calls = 0

    async def execute(self, input: ToolInput, /) -> ToolResult:
        self.calls += 1
        return ToolResult(await self.work(call_context.current()))
