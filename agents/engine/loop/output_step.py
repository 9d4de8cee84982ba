"""The final phase of a run with an output schema: no tools, a structured answer."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import Any

from agents.engine.errors import AgentError, ModelError, OutputDecodingFailed, PlanParseError
from agents.engine.events import Event, EventType
from agents.engine.guardrails.checks import GuardrailResult
from agents.engine.planner.react_planner import ModelRequest, ReActPlanner
from agents.engine.state import AgentState, Message, replace_surrogates
from agents.engine.turn.assembly import PlanResult

from .model_call import ModelCall
from .output_schema import OutputSchema, to_markdown
from .run_state import RunState
from .usage import turn_usage

MAX_RETRIES = 2
MAX_QUOTED_CHARS = 20_000
TOOL_ONLY_PARAMETERS = {"tool_choice", "parallel_tool_calls"}
JSON_MISSING = "There is no JSON in the answer."
TRUNCATED = "The answer was cut off at the output limit of the model."
TRUNCATED_ADVICE = "Ask for something smaller, or raise the model's output limit."

Events = AsyncGenerator[Event, None]


class ThoughtModelCall(ModelCall):
    """A model request whose text is displayed as a thought, because it isn't the answer yet."""

    def _delta_event(self, kind: str, text: str) -> Event:
        if kind == "answer":
            self.said.append(text)
        return super()._delta_event("thought", text)


class OutputStep:
    """Asks for the structured answer, with a few retries if it doesn't match the schema.

    It uses no turns, so a run that reached its last one still answers. Nothing of it is added
    to the history. It ends with a `plan` and its `value`, or a `finding` that blocks it.
    """

    def __init__(
        self,
        schema: OutputSchema,
        trail: RunState,
        listen: Callable[[int], ModelCall],
        recorded: Callable[[ModelRequest, ReActPlanner], dict[str, Any]],
        words: str = "",
    ) -> None:
        """`words` is the answer of the previous phase, if any."""
        self.schema = schema
        self.trail = trail
        self.listen = listen
        self.recorded = recorded
        self.words = words
        self.plan = PlanResult()
        self.value: Any = None
        self.finding: GuardrailResult | None = None
        self.findings: list[GuardrailResult] = []
        self._form = schema.response_format()
        self._asked: list[Message] = [{"role": "user", "content": schema.instructions()}]

    async def events(self) -> Events:
        failures = 0
        while self.finding is None and self.plan.final_answer is None:
            heard = self.listen(self.trail.next_step())
            try:
                async with aclosing(self._attempt(heard)) as attempt:
                    async for event in attempt:
                        yield event
            except OutputDecodingFailed as error:
                failures += 1
                yield self._end_event(heard, "failed", error=str(error))
                if failures > MAX_RETRIES:
                    self._keep_partial_answer(heard)
                    raise
                self._request_repair(_visible_answer(heard), _filter_text(heard, str(error)))
            except AgentError as error:
                if not self._is_schema_rejection(error, heard):
                    self._keep_partial_answer(heard)
                    raise
                self._form = None
                yield self._end_event(heard, "failed", error=str(error))

    def _keep_partial_answer(self, heard: ModelCall) -> None:
        """Keep the partial answer, unstructured or from the previous phase."""
        heard.said = [_visible_answer(heard) or self.words]

    async def _attempt(self, heard: ModelCall) -> Events:
        # In a thread, because counting the tokens of a long history takes a while.
        request = await asyncio.to_thread(self._request, heard.planner)
        for event in self._start_events(request, heard):
            yield event
        try:
            async with aclosing(heard.events(request, self._request)) as words:
                async for event in words:
                    yield event
        except PlanParseError as error:
            raise OutputDecodingFailed(JSON_MISSING) from error
        plan = heard.plan or PlanResult()
        sent = (heard.request or request).messages
        used = turn_usage(plan, sent, heard.guardrails.count_tokens)
        self.trail.progress.used.add(used)
        yield self.trail.emit(
            EventType.USAGE, step=heard.step, model=heard.planner.model, **used
        )
        if heard.finding is None:
            # In a thread too, because validating a large value takes a while.
            await asyncio.to_thread(self._decode_answer, heard, plan)
        self.finding = heard.finding or self.finding
        self.findings += heard.findings
        yield self._end_event(heard, "blocked" if self.finding else "done")

    def _decode_answer(self, heard: ModelCall, plan: PlanResult) -> None:
        try:
            self.value = self.schema.decode(_raw_answer(heard))
        except OutputDecodingFailed as error:
            if plan.turn.finish_reason != "length":
                raise
            raise OutputDecodingFailed(TRUNCATED, advice=TRUNCATED_ADVICE) from error
        # JSON escapes can hide a letter from a rule.
        inspected = heard.guardrails.inspect_value(self.value, "output")
        self.value = inspected.value
        self.finding = inspected.result if inspected.is_blocked else None
        heard.findings += _new_findings(inspected.findings, heard.findings)
        thought = self.words or plan.thought
        self.plan = replace(
            plan, thought=thought, final_answer=to_markdown(self.value), calls=()
        )

    # Request

    def _request(self, planner: ReActPlanner) -> ModelRequest:
        draft = AgentState.from_dict(self.trail.state.to_dict())
        if self.words:
            draft.add_message("assistant", self.words)
        request = _reserve_tokens(planner, self._asked).request(self.trail.query, draft, [])
        parameters = {
            k: v for k, v in request.parameters.items() if k not in TOOL_ONLY_PARAMETERS
        }
        if self._form is not None:
            parameters["response_format"] = self._form
        messages = _append_messages(request.messages, planner.hidden(self._asked))
        return replace(request, messages=messages, parameters=parameters)

    def _request_repair(self, text: str, error: str) -> None:
        said = replace_surrogates(text)[:MAX_QUOTED_CHARS] or "…"
        wish = f"{error} Write the whole JSON again so that it fits."
        self._asked += [
            {"role": "assistant", "content": said},
            {"role": "user", "content": wish},
        ]

    def _is_schema_rejection(self, error: AgentError, heard: ModelCall) -> bool:
        """Whether the error may mean that the provider doesn't support schemas."""
        return type(error) is ModelError and self._form is not None and not heard.said

    # Events

    def _start_events(self, request: ModelRequest, heard: ModelCall) -> Iterator[Event]:
        yield self.trail.emit(
            EventType.STEP_STARTED,
            step=heard.step,
            turn=self.trail.turn,
            kind="thought",
            phase="output",
            request=self.recorded(request, heard.planner),
        )
        if request.dropped or request.shortened:
            yield self.trail.emit(
                EventType.STATUS,
                kind="compaction",
                dropped=request.dropped,
                shortened=request.shortened,
                step=heard.step,
            )

    def _end_event(self, heard: ModelCall, status: str, **more: Any) -> Event:
        plan = heard.plan or PlanResult()
        text = "" if status == "blocked" else _visible_answer(heard)
        return self.trail.emit(
            EventType.STEP,
            step=heard.step,
            kind="answer",
            status=status,
            # A failed answer is visible nowhere else.
            thought=text if status == "failed" else plan.thought,
            answer=text,
            finish_reason=plan.turn.finish_reason,
            **more,
        )


def _new_findings(
    findings: Sequence[GuardrailResult], told: Sequence[GuardrailResult]
) -> list[GuardrailResult]:
    known = {finding.details["rule"] for finding in told}
    return [finding for finding in findings if finding.details["rule"] not in known]


def _raw_answer(heard: ModelCall) -> str:
    """Return the text to decode, unmasked: a marker inside JSON could break it."""
    return _answer_text(heard, heard.unmasked)


def _visible_answer(heard: ModelCall) -> str:
    """Return the text as it may be displayed."""
    return _filter_text(heard, _answer_text(heard, heard.plan))


def _filter_text(heard: ModelCall, text: str) -> str:
    return heard.guardrails.without_length_limits().inspect(text, "output").text


def _answer_text(heard: ModelCall, plan: PlanResult | None) -> str:
    """Return the answer; some providers enforce a schema by a call that wasn't offered."""
    plan = plan or PlanResult()
    if plan.final_answer is None and plan.calls:
        return plan.calls[0].arguments
    return plan.final_answer or "".join(heard.said)


def _reserve_tokens(planner: ReActPlanner, messages: Sequence[Message]) -> ReActPlanner:
    """Return the planner with a smaller window, so that these messages fit too."""
    if planner.window is None:
        return planner
    narrow = copy(planner)
    said = planner.count_tokens(json.dumps(list(messages), ensure_ascii=False))
    narrow.window = max(0, planner.window - said)
    return narrow


def _append_messages(messages: Sequence[Message], asked: Sequence[Message]) -> list[Message]:
    """Append messages; some models reject two messages of the same role in a row."""
    *before, last = messages or [{"role": "", "content": ""}]
    if last["role"] != "user" or not isinstance(last["content"], str):
        return [*messages, *asked]
    first, *rest = asked
    return [*before, {**last, "content": f"{last['content']}\n\n{first['content']}"}, *rest]
