"""A run's events as those of AG-UI."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    Interrupt,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agents.db.sentences import translate
from agents.engine.events import Event, EventType
from agents.engine.loop import StopReason
from agents.models import Run
from chat.api.client_tools import FunctionCall
from chat.api.waiting import WaitingRequest

FAILURES = (StopReason.ERROR, StopReason.INTERRUPTED)


class Translator:
    """Yields the AG-UI events of one request, which is a run or what follows an interrupt.

    A message is what one step says: text before tool calls is a message of its own, as it is
    for models. Agents that work for another one have steps, but no messages.
    """

    def __init__(
        self,
        run: Run,
        run_input: RunAgentInput,
        known_calls: Collection[str] = (),
        own_calls: Collection[str] = (),
    ) -> None:
        self.run = run
        self.ids: dict[str, Any] = {
            "thread_id": run_input.thread_id,
            "run_id": run_input.run_id,
        }
        self.state = run_input.state
        # Calls that the front end was told of before, and those that it made itself.
        self.known_calls = {*known_calls, *own_calls}
        self.own_calls = frozenset(own_calls)
        self.steps: dict[int, str] = {}
        self.message_id = ""
        self.reasoning_id = ""
        self.text = ""
        self.usage: dict[str, TokenUsage] = {}

    def start(self, trace_url: str) -> Iterator[BaseEvent]:
        yield RunStartedEvent(**self.ids, protocol_version=PROTOCOL_VERSION)
        # A snapshot replaces the state of the front end, so its own is part of it.
        own = self.state if isinstance(self.state, Mapping) else {}
        facts = {"runId": self.run.pk, "agent": self.run.agent_name, "traceUrl": trace_url}
        yield StateSnapshotEvent(snapshot={**own, "ashiato": facts})

    def translate(self, event: Event) -> Iterator[BaseEvent]:
        data = event.data
        if event.is_replayed:
            return
        is_nested = "parent" in data
        match event.type:
            case EventType.STEP_STARTED:
                yield from self._start_step(data["step"], event.agent)
            case EventType.STEP:
                if not is_nested:
                    yield from self._end_messages()
                if (name := self.steps.pop(data["step"], None)) is not None:
                    yield StepFinishedEvent(step_name=name)
            case EventType.USAGE:
                self._add_usage(data)
            case EventType.TOOL_CALL:
                yield from self._start_step(data["step"], data["function"]["name"])
                if not is_nested:
                    yield from self.call(data["id"], **data["function"])
            case _ if is_nested:
                pass
            case EventType.DELTA:
                yield from self._say(data["step"], data["content"])
            case EventType.THOUGHT_DELTA:
                yield from self._reason(data["step"], data["content"])
            case EventType.THOUGHT:
                if not self.message_id and not self.reasoning_id:
                    yield from self._reason(data["step"], data["content"])
                yield from self._end_messages()
                self.text = ""
            case EventType.TOOL_RESPONSE if data["tool_call_id"] not in self.own_calls:
                call_id = data["tool_call_id"]
                yield ToolCallResultEvent(
                    message_id=f"{self.run.pk}-{call_id}",
                    tool_call_id=call_id,
                    content=data["content"],
                )

    def finish(self, data: Mapping[str, Any]) -> Iterator[BaseEvent]:
        """Yield the end of a run, with its answer if it wasn't streamed as it is now."""
        yield from self._end_messages()
        reason = StopReason(data["stopped_reason"])
        detail = translate(data["detail"])
        if data["answer"] and data["answer"] != self.text:
            yield from self._say("answer", data["answer"])
            yield from self._end_messages()
        if reason in FAILURES or (not data["answer"] and reason is not StopReason.CANCELLED):
            yield from self.fail(detail or reason.value, reason.value)
            return
        cancelled = RunFinishedCancelledOutcome() if reason is StopReason.CANCELLED else None
        yield from self._finish(cancelled, data.get("output"))

    def pause(
        self, requests: Sequence[WaitingRequest], calls: Sequence[FunctionCall]
    ) -> Iterator[BaseEvent]:
        """Yield the end of this request: the run waits for people or the front end's tools."""
        yield from self._end_messages()
        for request in requests:
            if request.is_about_call:
                yield from self.call(request.call_id, request.tool, request.raw_arguments)
        for call in calls:
            yield from self.call(call.id, call.name, call.arguments)
        if not requests:
            pending = [call.id for call in calls]
            yield from self._finish(RunFinishedSuccessOutcome(pending_tool_call_ids=pending))
            return
        interrupts = [
            Interrupt(
                id=request.id,
                reason=request.why,
                message=request.message,
                tool_call_id=request.call_id if request.is_about_call else None,
                response_schema=dict(request.schema),
                metadata={"tool": request.tool, "arguments": request.arguments},
            )
            for request in requests
        ]
        yield from self._finish(RunFinishedInterruptOutcome(interrupts=interrupts))

    def fail(self, message: str, code: str) -> Iterator[BaseEvent]:
        yield RunErrorEvent(message=message, code=code, usage=list(self.usage.values()) or None)

    def call(self, id: str, name: str, arguments: str) -> Iterator[BaseEvent]:
        """Yield a tool call, once."""
        if id in self.known_calls:
            return
        self.known_calls.add(id)
        yield from self._end_messages()
        yield ToolCallStartEvent(tool_call_id=id, tool_call_name=name)
        yield ToolCallArgsEvent(tool_call_id=id, delta=arguments)
        yield ToolCallEndEvent(tool_call_id=id)

    def _finish(
        self, outcome: RunFinishedOutcome | None, result: Any = None
    ) -> Iterator[BaseEvent]:
        for name in self.steps.values():
            yield StepFinishedEvent(step_name=name)
        self.steps.clear()
        usage = list(self.usage.values()) or None
        yield RunFinishedEvent(**self.ids, outcome=outcome, result=result, usage=usage)

    def _start_step(self, number: int, subject: str) -> Iterator[BaseEvent]:
        if number not in self.steps:
            self.steps[number] = f"{number}. {subject}"
            yield StepStartedEvent(step_name=self.steps[number])

    def _say(self, step: int | str, text: str) -> Iterator[BaseEvent]:
        if self.reasoning_id:
            yield from self._end_messages()
        if not self.message_id:
            self.message_id = f"{self.run.pk}-{step}"
            self.text = ""
            yield TextMessageStartEvent(message_id=self.message_id, role="assistant")
        self.text += text
        if text:
            yield TextMessageContentEvent(message_id=self.message_id, delta=text)

    def _reason(self, step: int, text: str) -> Iterator[BaseEvent]:
        if self.message_id:
            yield from self._end_messages()
        if not self.reasoning_id:
            self.reasoning_id = f"{self.run.pk}-{step}-reasoning"
            yield ReasoningStartEvent(message_id=self.reasoning_id)
            yield ReasoningMessageStartEvent(message_id=self.reasoning_id)
        if text:
            yield ReasoningMessageContentEvent(message_id=self.reasoning_id, delta=text)

    def _end_messages(self) -> Iterator[BaseEvent]:
        if self.reasoning_id:
            yield ReasoningMessageEndEvent(message_id=self.reasoning_id)
            yield ReasoningEndEvent(message_id=self.reasoning_id)
            self.reasoning_id = ""
        if self.message_id:
            yield TextMessageEndEvent(message_id=self.message_id)
            self.message_id = ""

    def _add_usage(self, data: Mapping[str, Any]) -> None:
        model = data.get("model") or self.run.model
        total = self.usage.setdefault(
            model, TokenUsage(model=model, input_tokens=0, output_tokens=0)
        )
        total.input_tokens = (total.input_tokens or 0) + data.get("prompt_tokens", 0)
        total.output_tokens = (total.output_tokens or 0) + data.get("completion_tokens", 0)
