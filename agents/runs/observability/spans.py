"""Builds spans from events, by OpenTelemetry's conventions for generative AI.

Their ids derive from the run's, so that a resumed run continues its trace.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from agents.engine.events import Event, EventType, StatusKind
from agents.engine.privacy import mask_secrets

from .span_attributes import (
    MAX_CONTENT_CHARS,
    attribute_value,
    genai_message,
    kind_attributes,
    model_attributes,
    output_text,
    parameter_attributes,
    serialize,
    set_model,
)
from .trace_span import (
    ContentFilter,
    SpanEvent,
    TraceIdentity,
    TraceSpan,
    TraceSpanKind,
)

FAILURE_REASONS = {"error", "interrupted"}
# Parts of the tokens with a price of their own, in both conventions.
TOKEN_DETAILS = {
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_creation.input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
}
COST_ATTRIBUTES = ("gen_ai.usage.cost", "llm.cost.total")


class SpanBuilder:
    """The spans of one run; `content_filter` filters their content."""

    def __init__(
        self,
        identity: TraceIdentity,
        *,
        with_content: bool = False,
        content_filter: ContentFilter = lambda value: value,
    ) -> None:
        self.identity = identity
        self.with_content = with_content
        self.content_filter = content_filter
        self.seq = 0
        self._open: dict[str, TraceSpan] = {}
        self._sent_messages: dict[str, list[Mapping[str, Any]]] = {}

    def take(self, event: Event) -> list[TraceSpan]:
        """Apply an event and return the spans that ended."""
        self.seq = event.seq
        if event.is_replayed:
            # It was sent before, but later requests repeat its messages.
            if event.type is EventType.STEP_STARTED and self.with_content:
                self._messages(_agent_key(event), event.data["request"])
            return []
        handler = HANDLERS.get(event.type)
        return list(handler(self, event) or ()) if handler is not None else []

    def _on_run_started(self, event: Event) -> None:
        self._start_agent_span("run", event)

    def _on_handoff(self, event: Event) -> None:
        self._start_agent_span(_agent_key(event), event, parent=f"step:{event.data['parent']}")

    def _start_agent_span(self, key: str, event: Event, parent: str = "") -> TraceSpan:
        data = event.data
        span = self._start_span(key, event, f"invoke_agent {event.agent}", parent=parent)
        span.attributes |= kind_attributes("invoke_agent", "AGENT") | {
            "gen_ai.agent.name": event.agent
        }
        if "model" in data:
            span.attributes |= model_attributes(data)
        self._set_text(span, "input", data.get("query"), role="user")
        return span

    def _on_task(self, event: Event) -> None:
        """Start the span of a plan, task or evaluation, with its work below it."""
        kind = event.data["kind"]
        name = event.data["name"] if self.with_content else ""
        span_name = f"{kind} {self.content_filter(name)}".strip()
        span = self._start_span(
            _step_key(event), event, span_name, parent=self._parent_key(event)
        )
        span_kind = "EVALUATOR" if kind == "evaluation" else "CHAIN"
        span.attributes |= {
            "openinference.span.kind": span_kind,
            "gen_ai.agent.name": event.agent,
        }

    def _parent_key(self, event: Event) -> str:
        """Return the parent span: an agent's, or a plan step's."""
        agent_key = _agent_key(event)
        task_key = f"step:{event.data.get('parent')}"
        return task_key if agent_key not in self._open and task_key in self._open else agent_key

    def _on_step_started(self, event: Event) -> None:
        request = event.data["request"]
        span = self._start_span(_step_key(event), event, "chat", parent=self._parent_key(event))
        span.kind = TraceSpanKind.CLIENT
        span.attributes |= kind_attributes("chat", "LLM") | {
            "gen_ai.agent.name": event.agent,
            "gen_ai.request.stream": True,
            **parameter_attributes(request.get("parameters") or {}),
        }
        set_model(span, request)
        if self.with_content:
            messages = self._messages(_agent_key(event), request)
            genai_messages = [genai_message(message) for message in messages]
            span.attributes["gen_ai.input.messages"] = serialize(genai_messages)
            span.attributes["input.value"] = serialize(messages)

    def _messages(self, agent_key: str, request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return all messages of a request, which has only those that are new in it."""
        earlier = self._sent_messages.get(agent_key, [])[: request.get("kept", 0)]
        new = map(self.content_filter, request.get("messages", ()))
        messages = [*earlier, *new]
        self._sent_messages[agent_key] = messages
        return messages

    def _on_tool_call(self, event: Event) -> None:
        # A model can call a tool that doesn't exist, by any name.
        name = self.content_filter(event.data["function"]["name"])
        parent = self._parent_key(event)
        span = self._start_span(_step_key(event), event, f"execute_tool {name}", parent=parent)
        span.began = _event_time(event, "started")
        span.attributes |= kind_attributes("execute_tool", "TOOL") | {
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.data["id"],
            "gen_ai.agent.name": event.agent,
            "tool.name": name,
        }
        if self.with_content:
            arguments = serialize(self.content_filter(event.data["function"]["arguments"]))
            span.attributes |= {
                "gen_ai.tool.call.arguments": arguments,
                "input.value": arguments,
            }

    def _on_tool_response(self, event: Event) -> None:
        span = self._open.get(_step_key(event))
        if span is None:
            return
        data = event.data
        span.attributes["ashiato.attempts"] = data["attempts"]
        if files := data.get("attachments"):
            span.attributes["ashiato.attachments"] = len(files)
            if self.with_content:
                listed = serialize(self.content_filter(files))
                span.attributes["ashiato.attachment.references"] = listed
        if data["is_error"]:
            self._set_error(span, "tool_error", data["content"] if self.with_content else "")
        if self.with_content:
            result = serialize(self.content_filter(data["content"]))
            span.attributes |= {"gen_ai.tool.call.result": result, "output.value": result}

    def _on_usage(self, event: Event) -> None:
        if (span := self._open.get(_step_key(event))) is None:
            return
        data = event.data
        input_tokens = data["prompt_tokens"]
        output_tokens = data["completion_tokens"]
        if data.get("is_added"):  # a tool that asks the model several times
            input_tokens += span.attributes.get("gen_ai.usage.input_tokens", 0)
            output_tokens += span.attributes.get("gen_ai.usage.output_tokens", 0)
        span.attributes |= {
            "gen_ai.usage.input_tokens": input_tokens,
            "gen_ai.usage.output_tokens": output_tokens,
            "llm.token_count.prompt": input_tokens,
            "llm.token_count.completion": output_tokens,
            "llm.token_count.total": input_tokens + output_tokens,
        }
        for name, attributes in TOKEN_DETAILS.items():
            if data.get(name):
                span.attributes |= dict.fromkeys(attributes, data[name])
        if model := data.get("response_model"):
            # A deployment or an alias has no price; the model behind it does.
            span.attributes |= {"gen_ai.response.model": model, "llm.model_name": model}
        if data["cost"] is not None:
            span.attributes |= dict.fromkeys(COST_ATTRIBUTES, data["cost"])

    def _on_step(self, event: Event) -> Iterator[TraceSpan]:
        span = self._open.pop(_step_key(event), None)
        data = event.data
        if span is None:
            return
        span.ended = _event_time(event, "ended")
        span.attributes |= {"ashiato.step": data["step"], "ashiato.status": data["status"]}
        if reason := data.get("finish_reason"):
            span.attributes["gen_ai.response.finish_reasons"] = [str(reason)]
        if data["status"] == "failed" and span.failure is None:
            outcome_reason = data.get("reason", "") if self.with_content else ""
            self._set_error(span, "failed", data.get("error") or outcome_reason)
        if data["kind"] != "tool":
            self._set_text(span, "output", output_text(data), role="assistant")
        yield span

    def _on_status(self, event: Event) -> None:
        if event.data["kind"] == StatusKind.TOOL_PROGRESS:
            return  # several per second; monitors keep about a hundred events per span
        span = self._open.get(_step_key(event))
        if event.data["kind"] == StatusKind.MODEL_FALLBACK and span is not None:
            set_model(span, {**event.data, "model": event.data["to"]})
        self._add_event(event, "kind", "tool", "from", "to", "stand_in", "seconds", "attempt")

    def _on_guardrail(self, event: Event) -> None:
        self._add_event(event, "action", "reason")

    def _on_approval_requested(self, event: Event) -> None:
        self._add_event(event, "why", "step")

    def _on_approval_resolved(self, event: Event) -> None:
        self._add_event(event, "is_approved", "step")

    def _on_run_paused(self, event: Event) -> None:
        self._add_event(event, "reason")

    def _on_error(self, event: Event) -> Iterator[TraceSpan]:
        data = event.data
        span = self._open.pop(_step_key(event), None)
        self._set_error(self._root_span(event), data["type"], data["message"])
        if span is not None:
            span.ended = event.time
            self._set_error(span, data["type"], data["message"])
            yield span

    def _on_handoff_return(self, event: Event) -> Iterator[TraceSpan]:
        if (span := self._open.pop(_agent_key(event), None)) is not None:
            yield self._finish_span(span, event)

    def _on_run_finished(self, event: Event) -> Iterator[TraceSpan]:
        """End the run's span and all that are still open."""
        root = self._finish_span(self._root_span(event), event)
        for key, span in self._open.items():
            if key != "run":
                span.ended = span.ended or event.time
                yield span
        self._open.clear()
        yield root

    def _finish_span(self, span: TraceSpan, event: Event) -> TraceSpan:
        data = event.data
        span.ended = _event_time(event, "ended")
        span.attributes["ashiato.stopped_reason"] = data["stopped_reason"]
        if data["stopped_reason"] in FAILURE_REASONS and span.failure is None:
            self._set_error(span, data["stopped_reason"], data.get("detail", ""))
        if data["stopped_reason"] not in FAILURE_REASONS:
            span.failure = None  # earlier errors were recovered from
            span.attributes.pop("error.type", None)
        self._set_text(span, "output", data.get("answer"), role="assistant")
        return span

    def _root_span(self, event: Event) -> TraceSpan:
        return self._open.get("run") or self._start_agent_span("run", event)

    def _start_span(self, key: str, event: Event, name: str, *, parent: str = "") -> TraceSpan:
        began = self.identity.began if key == "run" else event.time
        span = TraceSpan(
            trace=self.identity.trace,
            id=self.identity.span(key),
            parent=self.identity.span(parent) if parent else b"",
            name=name,
            began=began,
            attributes={
                "gen_ai.conversation.id": self.identity.topic,
                "ashiato.run": self.identity.number,
            },
        )
        self._open[key] = span
        return span

    def _add_event(self, event: Event, *names: str) -> None:
        """Add an event to its step's span, or to the run's."""
        span = self._open.get(_step_key(event)) or self._open.get(_agent_key(event))
        if span is None:
            return
        attributes = {
            name: attribute_value(self.content_filter(event.data[name]))
            for name in names
            if event.data.get(name) is not None
        }
        span_event = SpanEvent(name=event.type.value, time=event.time, attributes=attributes)
        span.events.append(span_event)

    def _set_error(self, span: TraceSpan, kind: str, sentence: str) -> None:
        span.failure = mask_secrets(self.content_filter(sentence))[:MAX_CONTENT_CHARS]
        span.attributes["error.type"] = kind

    def _set_text(self, span: TraceSpan, direction: str, text: Any, role: str) -> None:
        if self.with_content and text:
            text = self.content_filter(text)
            message = {"role": role, "parts": [{"type": "text", "content": text}]}
            span.attributes[f"gen_ai.{direction}.messages"] = serialize([message])
            span.attributes[f"{direction}.value"] = serialize(text)


def _step_key(event: Event) -> str:
    return f"step:{event.data.get('step')}"


def _agent_key(event: Event) -> str:
    """Return the key of the event's agent: the run's, or one it handed off to."""
    parent = event.data.get("parent")
    return "run" if parent is None else f"handoff:{parent}"


def _event_time(event: Event, name: str) -> datetime:
    return datetime.fromisoformat(event.data[name]) if name in event.data else event.time


HANDLERS: dict[EventType, Callable[[SpanBuilder, Event], Iterable[TraceSpan] | None]] = {
    EventType.RUN_STARTED: SpanBuilder._on_run_started,
    EventType.HANDOFF: SpanBuilder._on_handoff,
    EventType.STEP_STARTED: SpanBuilder._on_step_started,
    EventType.TASK: SpanBuilder._on_task,
    EventType.TOOL_CALL: SpanBuilder._on_tool_call,
    EventType.TOOL_RESPONSE: SpanBuilder._on_tool_response,
    EventType.USAGE: SpanBuilder._on_usage,
    EventType.STEP: SpanBuilder._on_step,
    EventType.STATUS: SpanBuilder._on_status,
    EventType.GUARDRAIL: SpanBuilder._on_guardrail,
    EventType.APPROVAL_REQUESTED: SpanBuilder._on_approval_requested,
    EventType.APPROVAL_RESOLVED: SpanBuilder._on_approval_resolved,
    EventType.RUN_PAUSED: SpanBuilder._on_run_paused,
    EventType.ERROR: SpanBuilder._on_error,
    EventType.HANDOFF_RETURN: SpanBuilder._on_handoff_return,
    EventType.RUN_FINISHED: SpanBuilder._on_run_finished,
}
