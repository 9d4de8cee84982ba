"""Recorded tool results: a run repeats on them, and no tool is executed.

A call with the same tool and the same arguments gets the recorded observation. A call that was
never recorded is where the run diverges, so it stops there.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal
from unicodedata import normalize

from agents.engine.errors import RunCancelled
from agents.engine.events import Event, EventType
from agents.engine.material.passages import Passage
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import without_error_prefix
from agents.engine.tool import ToolInput, ToolResult
from agents.engine.tool_selection import CONSTANT_TOOLS
from agents.engine.turn.tool_calls import ToolCall

from ..run_loop import Events
from .approval import AskPersonTool

MAX_CALL_CHARS = 400
NOT_RECORDED = _(
    "This run replays recorded tool results, and this call wasn't "
    "recorded, so nothing was done. Continue without it."
)
DivergenceKind = Literal["not_recorded", "order", "repeated", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A tool call without its result."""

    tool: str
    arguments: Any

    @property
    def key(self) -> str:
        return call_key(self.tool, self.arguments)

    @property
    def text(self) -> str:
        """The call as a person reads it: one text argument stands alone."""
        arguments = self.arguments
        if isinstance(arguments, Mapping) and len(arguments) == 1:
            (only,) = arguments.values()
            arguments = only if isinstance(only, str) else arguments
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False, default=str)
        return f"{self.tool}: {' '.join(arguments.split())}"[:MAX_CALL_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall(MadeCall):
    """A tool call with its recorded result."""

    observation: str
    is_error: bool = False
    sources: tuple[Passage, ...] | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "RecordedCall":
        sources = data.get("sources")
        return cls(
            tool=data["tool"],
            arguments=data["arguments"],
            observation=data["observation"],
            is_error=data["is_error"],
            sources=tuple(map(Passage.from_dict, sources)) if sources else None,
        )

    @property
    def result(self) -> ToolResult:
        if self.is_error:
            error = without_error_prefix(self.observation)
            return ToolResult(error=error, mendable=True)
        return ToolResult(self.observation, sources=self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first call that differs from the recording; `at` is its number, from 1."""

    kind: DivergenceKind
    at: int
    made: str = ""
    recorded: str = ""


class CallNotRecorded(RunCancelled):
    message = _("A call wasn't recorded, so the run on recorded results stopped.")

    def __init__(self, call: MadeCall) -> None:
        super().__init__(
            _("Stopped at a call that wasn't recorded: %(words)s", words=call.text)
        )


class RecordedCalls:
    """The recorded tool results; a repeated call gets its results in order."""

    def __init__(self, recorded: Iterable[RecordedCall]) -> None:
        self.recorded = list(recorded)
        self.made: list[MadeCall] = []
        self._results: dict[str, list[ToolResult]] = {}
        for row in self.recorded:
            self._results.setdefault(row.key, []).append(row.result)

    def answer(self, tool: str, input: ToolInput) -> ToolResult:
        call = MadeCall(tool=tool, arguments=input)
        results = self._results.get(call.key)
        if results is None:
            return ToolResult(error=NOT_RECORDED, mendable=True)
        return results.pop(0) if len(results) > 1 else results[0]

    def knows(self, call: MadeCall) -> bool:
        return call.key in self._results

    def resume(self, past_events: Iterable[Event]) -> None:
        """Take over the calls of an interrupted run, whose results are used up."""
        calls: dict[str, MadeCall] = {}
        for event in past_events:
            if (call := made_call(event)) is not None:
                self.made.append(call)
                calls[event.data["id"]] = call
            elif event.type is EventType.TOOL_RESPONSE:
                done = calls.get(event.data["tool_call_id"])
                if done is not None:
                    self.answer(done.tool, done.arguments)

    async def until_divergence(self, events: Events) -> Events:
        """Yield the events up to the first call that wasn't recorded, then raise."""
        async with aclosing(events) as stream:
            async for event in stream:
                yield event
                call = made_call(event)
                if call is None:
                    continue
                self.made.append(call)
                if not self.knows(call):
                    raise CallNotRecorded(call)


class RecordedPerson(AskPersonTool):
    """A person asked by an agent or a plan, who gives the recorded answer."""

    waits = False

    def __init__(self, recorded_calls: RecordedCalls, person: AskPersonTool) -> None:
        super().__init__(person.experts, asker_approves=person.asker_approves)
        self.recorded_calls = recorded_calls

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return self.recorded_calls.answer(self.name, input)


@dataclass(slots=True)
class RecordedTool:
    """A tool with the real specification that does nothing."""

    recorded_calls: RecordedCalls
    definition: Mapping[str, Any]
    is_untrusted: bool = False
    name: str = field(init=False)
    description: str = field(init=False)
    parameters: Mapping[str, Any] = field(init=False)
    effect: str = "read"
    needs_approval: bool = False

    def __post_init__(self) -> None:
        function = self.definition["function"]
        self.name = function["name"]
        self.description = function["description"]
        self.parameters = function["parameters"]

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return self.recorded_calls.answer(self.name, input)


def call_key(tool: str, arguments: Any) -> str:
    """Return the call in one notation: order, null values and outer spaces don't matter."""
    text = json.dumps(_canonical(arguments), sort_keys=True, ensure_ascii=False, default=str)
    return f"{tool} {text}"


def _canonical(value: Any) -> Any:
    if isinstance(value, str):
        return normalize("NFC", value).replace("\r\n", "\n").strip()
    if isinstance(value, Mapping):
        return {str(k): _canonical(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


def made_call(event: Event) -> MadeCall | None:
    """Return the call that an event reports; None for handoffs, blocked calls and searches."""
    if event.type is not EventType.TOOL_CALL or not event.data.get("effect"):
        return None
    function = event.data["function"]
    if function["name"] in CONSTANT_TOOLS:
        return None  # a search for tools does nothing
    call = ToolCall(id=event.data["id"], name=function["name"], arguments=function["arguments"])
    return MadeCall(tool=call.name, arguments=call.readable)


def first_divergence(
    recorded: Sequence[MadeCall], made: Sequence[MadeCall], *, is_ordered: bool = True
) -> Divergence | None:
    """Return where the calls differ first.

    Without `is_ordered` their order doesn't matter, as in plans, whose steps run in parallel.
    """
    recorded_keys = {call.key for call in recorded}
    remaining = Counter(call.key for call in recorded)
    for position, call in enumerate(made, start=1):
        if is_ordered:
            expected = recorded[position - 1] if position <= len(recorded) else None
        else:
            expected = next((row for row in recorded if remaining[row.key] > 0), None)
        instead = expected.text if expected else ""
        if call.key not in recorded_keys:
            return Divergence(
                kind="not_recorded", at=position, made=call.text, recorded=instead
            )
        remaining[call.key] -= 1
        if remaining[call.key] < 0:
            return Divergence(kind="repeated", at=position, made=call.text, recorded=instead)
        if is_ordered and expected is not None and call.key != expected.key:
            return Divergence(kind="order", at=position, made=call.text, recorded=instead)
    missed = next((row for row in recorded if remaining[row.key] > 0), None)
    if missed is None:
        return None
    return Divergence(kind="missing", at=len(made) + 1, recorded=missed.text)
