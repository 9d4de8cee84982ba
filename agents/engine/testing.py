"""A scripted model and tool for testing agents without a provider or network."""

import json
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
        for chunk in self._chunks(says):
            yield chunk

    def assert_used_up(self) -> None:
        if self.script:
            raise AssertionError(f"These turns were never asked for: {self.script}")

    def _chunks(self, says: Says) -> list[dict[str, Any]]:
        if self.dialect == "react":
            return _text(says)
        return _native(says)


def _native(says: Says) -> list[dict[str, Any]]:
    chunks = [delta(reasoning_content=says.thought)] if says.thought else []
    chunks += [delta(content=word) for word in _words(says.answer)]
    for at, call in enumerate(says.calls):
        function = {"name": call.name, "arguments": _arguments(call)}
        chunks.append(delta(tool_calls=[{"index": at, "id": f"c{at}", "function": function}]))
    return [*chunks, finish("tool_calls" if says.calls else "stop")]


def _text(says: Says) -> list[dict[str, Any]]:
    text = f"Thought: {says.thought}\n" if says.thought else ""
    for call in says.calls:
        text += f"Action: {call.name}\nAction Input: {_arguments(call)}\n"
    if says.answer:
        text += f"Final Answer: {says.answer}"
    return [*(delta(content=word) for word in _words(text)), finish("stop")]


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def finish(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def _words(text: str) -> list[str]:
    return [f"{word} " for word in text.split(" ")][:-1] + text.split(" ")[-1:] if text else []


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
