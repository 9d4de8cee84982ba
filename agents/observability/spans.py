"""Events → spans, as OpenTelemetry's conventions for generative AI name them.

Their ids follow from the run's own, so that whoever goes on with a run goes on with its trace.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from hashlib import sha256
from typing import Any

from agents.engine.events import Event, Type
from agents.engine.privacy.secrets import masked

Shown = Callable[[Any], Any]
Value = str | bool | int | float | Sequence[str]

MOST_CONTENT = 20_000
FAILED = {"error", "interrupted"}
# Where the part of a model's name before the slash is not what the conventions call it.
PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "demo": "ashiato",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}


class Kind(IntEnum):
    INTERNAL = 1
    CLIENT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that happened within a span."""

    name: str
    time: datetime
    attributes: Mapping[str, Value]


@dataclass(slots=True, kw_only=True)
class Span:
    trace: bytes
    id: bytes
    name: str
    began: datetime
    kind: Kind = Kind.INTERNAL
    parent: bytes = b""
    ended: datetime | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    failure: str | None = None  # what went wrong, in a sentence; None where nothing did


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The run that spans are about."""

    number: int
    topic: str
    began: datetime

    @property
    def trace(self) -> bytes:
        return self._digest("")[:16]

    def span(self, key: str) -> bytes:
        return self._digest(key)[:8]

    def _digest(self, key: str) -> bytes:
        moment = round(self.began.timestamp() * 1_000_000)
        return sha256(f"ashiato:{self.number}:{moment}:{key}".encode()).digest()


class Course:
    """The spans of one run as they begin and end; `shown` is what is told of a content."""

    def __init__(
        self,
        subject: Subject,
        *,
        with_content: bool = False,
        shown: Shown = lambda value: value,
    ) -> None:
        self.subject = subject
        self.with_content = with_content
        self.shown = shown
        self.seq = 0
        self._open: dict[str, Span] = {}
        self._sent: dict[str, list[Mapping[str, Any]]] = {}

    def take(self, event: Event) -> list[Span]:
        """Those that are over now."""
        self.seq = event.seq
        if event.is_replayed:
            self._recall(event)
            return []
        reader = READERS.get(event.type)
        return list(reader(self, event) or ()) if reader is not None else []

    def _recall(self, event: Event) -> None:
        """What another run did is in its own trace; here it matters only what was sent."""
        if event.type is Type.STEP_STARTED and self.with_content:
            self._messages(_whose(event), event.data["request"])

    def _run_started(self, event: Event) -> None:
        self._agent("run", event)

    def _handoff(self, event: Event) -> None:
        self._agent(_whose(event), event, parent=f"step:{event.data['parent']}")

    def _agent(self, key: str, event: Event, parent: str = "") -> Span:
        data = event.data
        span = self._begin(key, event, f"invoke_agent {event.agent}", parent=parent)
        span.attributes |= _named("invoke_agent", "AGENT") | {"gen_ai.agent.name": event.agent}
        if "model" in data:
            span.attributes |= _model(_asked(data))
        self._say(span, "input", data.get("query"), role="user")
        return span

    def _task(self, event: Event) -> None:
        """A plan, a step of one, or a check: what is done for it is below it."""
        kind, name = event.data["kind"], event.data["name"] if self.with_content else ""
        named = f"{kind} {self.shown(name)}".strip()
        span = self._begin(_place(event), event, named, parent=self._home(event))
        of = "EVALUATOR" if kind == "evaluation" else "CHAIN"
        span.attributes |= {"openinference.span.kind": of, "gen_ai.agent.name": event.agent}

    def _home(self, event: Event) -> str:
        """The span under which it happens: an agent's, or that of a step of a plan."""
        whose, task = _whose(event), f"step:{event.data.get('parent')}"
        return task if whose not in self._open and task in self._open else whose

    def _step_started(self, event: Event) -> None:
        model = _asked(event.data["request"])
        span = self._begin(_place(event), event, f"chat {model}", parent=self._home(event))
        span.kind = Kind.CLIENT
        span.attributes |= _named("chat", "LLM") | _model(model) | {"llm.model_name": model}
        span.attributes |= {"gen_ai.agent.name": event.agent}
        if self.with_content:
            self._ask(span, _whose(event), event.data["request"])

    def _messages(self, whose: str, request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        before = self._sent.get(whose, [])
        new = map(self.shown, request.get("messages", ()))
        self._sent[whose] = [*before[: request.get("kept", 0)], *new]
        return self._sent[whose]

    def _ask(self, span: Span, whose: str, request: Mapping[str, Any]) -> None:
        messages = self._messages(whose, request)
        span.attributes["gen_ai.input.messages"] = _content([_message(m) for m in messages])
        span.attributes["input.value"] = _content(messages)

    def _tool_call(self, event: Event) -> None:
        name = event.data["function"]["name"]
        parent = self._home(event)
        span = self._begin(_place(event), event, f"execute_tool {name}", parent=parent)
        span.began = _moment(event, "started")
        span.attributes |= _named("execute_tool", "TOOL") | {
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.data["id"],
            "gen_ai.agent.name": event.agent,
            "tool.name": name,
        }
        if self.with_content:
            arguments = _content(self.shown(event.data["function"]["arguments"]))
            span.attributes |= {
                "gen_ai.tool.call.arguments": arguments,
                "input.value": arguments,
            }

    def _tool_response(self, event: Event) -> None:
        span, data = self._open.get(_place(event)), event.data
        if span is None:
            return
        span.attributes["ashiato.attempts"] = data["attempts"]
        if data["is_error"]:
            self._fail(span, "tool_error", data["content"] if self.with_content else "")
        if self.with_content:
            result = _content(self.shown(data["content"]))
            span.attributes |= {"gen_ai.tool.call.result": result, "output.value": result}

    def _usage(self, event: Event) -> None:
        if (span := self._open.get(_place(event))) is None:
            return
        read, written = event.data["prompt_tokens"], event.data["completion_tokens"]
        span.attributes |= {
            "gen_ai.usage.input_tokens": read,
            "gen_ai.usage.output_tokens": written,
            "llm.token_count.prompt": read,
            "llm.token_count.completion": written,
            "llm.token_count.total": read + written,
            "gen_ai.response.model": event.data.get("model") or span.name[len("chat ") :],
        }
        if event.data["cost"] is not None:
            span.attributes["gen_ai.usage.cost"] = event.data["cost"]

    def _step(self, event: Event) -> Iterator[Span]:
        span, data = self._open.pop(_place(event), None), event.data
        if span is None:
            return
        span.ended = _moment(event, "ended")
        span.attributes |= {"ashiato.step": data["step"], "ashiato.status": data["status"]}
        if reason := data.get("finish_reason"):
            span.attributes["gen_ai.response.finish_reasons"] = [str(reason)]
        if data["status"] == "failed" and span.failure is None:
            found = data.get("reason", "") if self.with_content else ""
            self._fail(span, "failed", data.get("error") or found)
        if data["kind"] != "tool":
            self._say(span, "output", _said(data), role="assistant")
        yield span

    def _status(self, event: Event) -> None:
        self._note(event, "kind", "tool", "from", "to", "stand_in", "seconds", "attempt")

    def _guardrail(self, event: Event) -> None:
        self._note(event, "action", "reason")

    def _approval_requested(self, event: Event) -> None:
        self._note(event, "why", "step")

    def _approval_resolved(self, event: Event) -> None:
        self._note(event, "is_approved", "step")

    def _run_paused(self, event: Event) -> None:
        self._note(event, "reason")

    def _error(self, event: Event) -> Iterator[Span]:
        data, key = event.data, _place(event)
        span = self._open.pop(key, None)
        self._fail(self._root(event), data["type"], data["message"])
        if span is not None:
            span.ended = event.time
            self._fail(span, data["type"], data["message"])
            yield span

    def _handoff_return(self, event: Event) -> Iterator[Span]:
        if (span := self._open.pop(_whose(event), None)) is not None:
            yield self._over(span, event)

    def _run_finished(self, event: Event) -> Iterator[Span]:
        """The last word: what is still open ends with it."""
        root = self._over(self._root(event), event)
        for key, span in self._open.items():
            if key != "run":
                span.ended = span.ended or event.time
                yield span
        self._open.clear()
        yield root

    def _over(self, span: Span, event: Event) -> Span:
        data = event.data
        span.ended = _moment(event, "ended")
        span.attributes["ashiato.stopped_reason"] = data["stopped_reason"]
        if data["stopped_reason"] in FAILED and span.failure is None:
            self._fail(span, data["stopped_reason"], data.get("detail", ""))
        if data["stopped_reason"] not in FAILED:
            span.failure = None  # what went wrong on the way was got over
            span.attributes.pop("error.type", None)
        self._say(span, "output", data.get("answer"), role="assistant")
        return span

    def _root(self, event: Event) -> Span:
        return self._open.get("run") or self._agent("run", event)

    def _begin(self, key: str, event: Event, name: str, *, parent: str = "") -> Span:
        began = self.subject.began if key == "run" else event.time
        span = Span(
            trace=self.subject.trace,
            id=self.subject.span(key),
            parent=self.subject.span(parent) if parent else b"",
            name=name,
            began=began,
            attributes={
                "gen_ai.conversation.id": self.subject.topic,
                "ashiato.run": self.subject.number,
            },
        )
        self._open[key] = span
        return span

    def _note(self, event: Event, *names: str) -> None:
        """In the step where it happened, or in the run where that has none."""
        span = self._open.get(_place(event)) or self._open.get(_whose(event))
        if span is not None:
            facts = {n: _plain(event.data[n]) for n in names if event.data.get(n) is not None}
            span.notes.append(Note(name=event.type.value, time=event.time, attributes=facts))

    def _fail(self, span: Span, kind: str, sentence: str) -> None:
        span.failure = masked(self.shown(sentence))[:MOST_CONTENT]
        span.attributes["error.type"] = kind

    def _say(self, span: Span, way: str, text: Any, role: str) -> None:
        if self.with_content and text:
            text = self.shown(text)
            message = {"role": role, "parts": [{"type": "text", "content": text}]}
            span.attributes[f"gen_ai.{way}.messages"] = _content([message])
            span.attributes[f"{way}.value"] = _content(text)


def _place(event: Event) -> str:
    return f"step:{event.data.get('step')}"


def _whose(event: Event) -> str:
    """The agent that did it: the one that was asked, or one that works for it."""
    parent = event.data.get("parent")
    return "run" if parent is None else f"handoff:{parent}"


def _moment(event: Event, name: str) -> datetime:
    return datetime.fromisoformat(event.data[name]) if name in event.data else event.time


def _named(operation: str, kind: str) -> dict[str, Value]:
    """What it is, by both conventions that monitors read."""
    return {"gen_ai.operation.name": operation, "openinference.span.kind": kind}


def _asked(about: Mapping[str, Any]) -> str:
    """As the provider calls it: a label of ours says nothing to a monitor."""
    return about.get("provider_model") or about.get("model", "")


def _model(name: str) -> dict[str, Value]:
    before, _, _ = name.partition("/")
    provider = PROVIDERS.get(before, before)
    return {
        "gen_ai.provider.name": provider,
        "gen_ai.system": provider,
        "gen_ai.request.model": name,
    }


def _said(data: Mapping[str, Any]) -> str:
    return "\n\n".join(filter(None, (data.get("thought"), data.get("answer"))))


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """As the conventions have it: a role and its parts."""
    content = message.get("content")
    parts = [{"type": "text", "content": content}] if content else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append({"type": "tool_call", "id": call["id"], **function})
    if message["role"] == "tool":
        parts = [
            {
                "type": "tool_call_response",
                "id": message.get("tool_call_id", ""),
                "response": content,
            }
        ]
    return {"role": message["role"], "parts": parts}


def _content(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return masked(text[:MOST_CONTENT])


def _plain(value: Any) -> Value:
    return value if isinstance(value, bool | int | float) else masked(str(value))


READERS: dict[Type, Callable[[Course, Event], Iterable[Span] | None]] = {
    Type.RUN_STARTED: Course._run_started,
    Type.HANDOFF: Course._handoff,
    Type.STEP_STARTED: Course._step_started,
    Type.TASK: Course._task,
    Type.TOOL_CALL: Course._tool_call,
    Type.TOOL_RESPONSE: Course._tool_response,
    Type.USAGE: Course._usage,
    Type.STEP: Course._step,
    Type.STATUS: Course._status,
    Type.GUARDRAIL: Course._guardrail,
    Type.APPROVAL_REQUESTED: Course._approval_requested,
    Type.APPROVAL_RESOLVED: Course._approval_resolved,
    Type.RUN_PAUSED: Course._run_paused,
    Type.ERROR: Course._error,
    Type.HANDOFF_RETURN: Course._handoff_return,
    Type.RUN_FINISHED: Course._run_finished,
}
