"""A run's events as one clean answer: its text, its thoughts, and how it ends.

Text that turns out to be a thought must not have been sent as the answer. So while an agent can
call tools, the beginning of each step's text is held back for a moment.
"""

import json
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _

from agents.db import database
from agents.db.sentences import translate
from agents.engine.events import Event, EventType
from agents.engine.loop import CLIENT, StopReason
from agents.models import Approval, Run
from agents.models.runs.runs import STOP_REASONS

from .. import calls, client_tools
from ..calls import Caller
from ..client_tools import FunctionCall

HELD_CHARS = 200
# How long a request waits for a decision in the browser, and for anything at all.
APPROVAL_SECONDS = 300.0
MAX_SECONDS = 3_600.0

Finish = Literal["stop", "length", "tool_calls", "content_filter", "waiting", "error"]
PARTIAL = {
    StopReason.MAX_STEPS: "length",
    StopReason.TOOL_LIMIT: "length",
    StopReason.DUPLICATE: "length",
    StopReason.BUDGET: "length",
    StopReason.CANCELLED: "stop",
    StopReason.DEGRADED: "stop",
}


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of a thought."""

    text: str


Piece = Text | Thought | Event


@dataclass(slots=True)
class Usage:
    """The tokens that models have used."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0

    def add(self, data: Any) -> None:
        self.input += data.get("prompt_tokens") or 0
        self.output += data.get("completion_tokens") or 0
        self.cached += data.get("cache_read_tokens") or 0
        self.reasoning += data.get("reasoning_tokens") or 0


@dataclass(slots=True)
class Ending:
    """How a request ends: with an answer, with calls for the program, or with an error."""

    finish: Finish
    detail: str = ""
    code: str = ""


class AnswerReader:
    """Reads the events of one run for one request.

    With `is_structured`, the answer is the JSON that the schema asks for, and comes whole. For
    the decision of a person it `waits` some minutes, or not at all.
    """

    def __init__(self, run: Run, *, is_structured: bool = False, waits: bool = True) -> None:
        self.run = run
        self.is_structured = is_structured
        self.waits = waits
        self.usage = Usage()
        self.text = ""
        self.calls: list[FunctionCall] = []  # that the program has to make
        self.ending: Ending | None = None
        self.answer: str | None = None  # the whole answer, once it is final
        self._held = ""
        self._is_holding = False
        self._has_tools = True  # unless the run has started without any
        self._step_chars = 0  # of this step's text, sent already
        self._finish_reason = ""

    def read(self, event: Event) -> Iterator[Piece]:
        """Yield what this event adds; events of tool calls and approvals as they are."""
        data = event.data
        is_own = data.get("parent") is None
        match event.type:
            case EventType.USAGE:
                self.usage.add(data)
            case EventType.RUN_STARTED:
                self._has_tools = bool(data.get("tools"))
            case EventType.STEP_STARTED if is_own:
                self._is_holding = self._has_tools
                self._step_chars = 0
            case EventType.DELTA if is_own and not self.is_structured:
                self._held += data["content"]
                if not self._is_holding or len(self._held) > HELD_CHARS:
                    self._is_holding = False
                    yield from self._release()
            case EventType.THOUGHT_DELTA if is_own:
                yield Thought(data["content"])
            case EventType.THOUGHT if is_own:
                held = self._held
                self._held = ""
                if held:
                    yield Thought(held)
                if self._step_chars:  # too late to take it back
                    self._held = "\n\n"
            case EventType.STEP if is_own and data["kind"] == "answer":
                self._finish_reason = data.get("finish_reason") or ""
            case EventType.RUN_PAUSED if self.calls:
                self.ending = Ending("tool_calls")
            case EventType.RUN_PAUSED if not self.waits:
                self.ending = Ending("waiting")
            case EventType.RUN_FINISHED:
                yield from self._end(data)
            case EventType.APPROVAL_REQUESTED if data["why"] == CLIENT:
                self.calls.append(
                    FunctionCall(
                        id=client_tools.call_id(self.run.pk, data["step"]),
                        name=data["function"]["name"],
                        arguments=data["function"]["arguments"],
                    )
                )
            case (
                EventType.TOOL_CALL
                | EventType.TOOL_RESPONSE
                | EventType.APPROVAL_REQUESTED
                | EventType.APPROVAL_RESOLVED
                | EventType.STATUS
            ):
                yield event

    def _release(self) -> Iterator[Piece]:
        text = self._held
        self._held = ""
        if text:
            self.text += text
            self._step_chars += len(text)
            yield Text(text)

    def _end(self, data: Any) -> Iterator[Piece]:
        reason = StopReason(data["stopped_reason"])
        detail = " ".join(
            translate(data.get(name) or "") for name in ("detail", "advice") if data.get(name)
        )
        answer = data.get("answer") or ""
        if reason is StopReason.BLOCKED:
            self.ending = Ending("content_filter", detail)
            return
        if self.is_structured and data.get("output") is not None:
            answer = json.dumps(data["output"], ensure_ascii=False)
        elif self.is_structured:
            answer = ""
        self.answer = answer
        yield from self._rest(answer)
        if reason is StopReason.COMPLETED:
            self.ending = Ending("length" if self._finish_reason == "length" else "stop")
        elif reason in PARTIAL and self.text:
            self.ending = Ending(PARTIAL[reason], detail)  # type: ignore[arg-type]
        else:
            self.ending = Ending("error", detail or str(STOP_REASONS[reason]), reason.value)

    def _rest(self, answer: str) -> Iterator[Piece]:
        """Yield what of the final answer wasn't sent yet: citations may have been removed."""
        if answer.startswith(self.text):
            self._held = answer[len(self.text) :]
        yield from self._release()


async def pieces(
    caller: Caller, run: Run, reader: AnswerReader, after: int = 0
) -> AsyncGenerator[Piece | None, None]:
    """Yield the pieces of an answer until the reader has its ending; None when none came.

    It ends when the program has to call a function.
    """
    end = time.monotonic() + MAX_SECONDS
    # What was asked before this request may still wait.
    waiting_since = time.monotonic() if after else None
    async with aclosing(calls.follow(caller, run, after)) as events:
        async for event in events:
            now = time.monotonic()
            patience = APPROVAL_SECONDS if reader.waits else 0.0
            is_late = waiting_since is not None and now - waiting_since > patience
            if event is None and is_late and await database.run(_is_waiting, run.pk):
                reader.ending = Ending("waiting")
                return
            if now > end:
                reader.ending = Ending("error", _("The run takes too long."), "timeout")
                return
            if event is None:
                yield None
                continue
            is_asked = event.type in {EventType.APPROVAL_REQUESTED, EventType.RUN_PAUSED}
            waiting_since = (waiting_since or now) if is_asked else None
            for piece in reader.read(event):
                yield piece
            if reader.ending is not None:
                return
    if reader.ending is None:
        sentence = _("This API key can no longer be used, so the answer wasn’t sent.")
        reader.ending = Ending("error", sentence, "key_revoked")


def _is_waiting(run: int) -> bool:
    """Whether the run waits for a person: for a decision, or an answer to a running call."""
    return Approval.objects.waiting().filter(run=run).exists()
