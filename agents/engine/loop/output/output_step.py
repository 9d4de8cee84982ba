"""The final phase of a run with an output schema: no tools, a structured answer."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import Any

from agents.engine.errors import AgentError, ModelError, OutputDecodingFailed, PlanParseError
from agents.engine.events import Event, EventType
from agents.engine.guardrails.checks import GuardrailResult
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.sentences import Sentence as _
from agents.engine.state import AgentState, Message, replace_surrogates
from agents.engine.turn.assembly import PlanResult

from ..lifecycle_events import finding_events
from ..model_calls.model_call import ModelCall
from ..model_calls.model_step import request_events
from ..model_calls.usage import turn_usage
from ..run_state import RunState
from .output_schema import OutputSchema, to_markdown

MAX_RETRIES = 2
MAX_QUOTED_CHARS = 20_000
TOOL_ONLY_PARAMETERS = {"tool_choice", "parallel_tool_calls"}
JSON_MISSING = _("The answer contains no JSON.")
TRUNCATED = _("The answer was cut off at the model's output limit.")
TRUNCATED_ADVICE = _("Ask for less, or raise the model's output limit.")

Events = AsyncGenerator[Event, None]


class ThoughtModelCall(ModelCall):
    """A model request whose text is displayed as a thought, because it isn't the answer yet."""

    def _delta_event(self, kind: str, text: str) -> Event:
        if kind == "answer":
            self.text_parts.append(text)
        return super()._delta_event("thought", text)


class OutputStep:
    """Asks for the structured answer, with a few retries if it doesn't match the schema.

    It uses no turns, so a run that reached its last one still answers. Nothing of it is added
    to the history. It ends with a `plan` and its `value`, or a `finding` that blocks it.
    """

    def __init__(
        self,
        schema: OutputSchema,
        run_state: RunState,
        new_call: Callable[[int], ModelCall],
        draft_answer: str = "",
    ) -> None:
        """`draft_answer` is the answer of the previous phase, if any."""
        self.schema = schema
        self.run_state = run_state
        self.new_call = new_call
        self.draft_answer = draft_answer
        self.plan = PlanResult()
        self.value: Any = None
        self.finding: GuardrailResult | None = None
        self.findings: list[GuardrailResult] = []
        self._response_format = schema.response_format()
        self._repair_messages: list[Message] = [
            {"role": "user", "content": schema.instructions()}
        ]

    async def events(self) -> Events:
        failures = 0
        while self.finding is None and self.plan.final_answer is None:
            call = self.new_call(self.run_state.next_step())
            call.phase = "output"
            try:
                # In a thread, because counting the tokens of a long history takes a while.
                request = await asyncio.to_thread(self._request, call.planner)
                for event in request_events(self.run_state, request, call, phase="output"):
                    yield event
                try:
                    async with aclosing(call.events(request, self._request)) as events:
                        async for event in events:
                            yield event
                except PlanParseError as error:
                    raise OutputDecodingFailed(JSON_MISSING) from error
                usage = turn_usage(
                    call.plan or PlanResult(),
                    call.request.messages,
                    call.guardrails.count_tokens,
                )
                self.run_state.progress.used.add(usage)
                yield self.run_state.emit(
                    EventType.USAGE, step=call.step, model=call.planner.model, **usage
                )
                await self._decode_reply(call)
                yield self._end_event(call, "blocked" if self.finding else "done")
            except OutputDecodingFailed as error:
                failures += 1
                yield self._end_event(call, "failed", error=str(error))
                if failures > MAX_RETRIES:
                    self._keep_partial_answer(call)
                    raise
                self._request_repair(_visible_answer(call), _filter_text(call, str(error)))
            except AgentError as error:
                # The provider may not support schemas.
                is_first = self._response_format is not None and not call.text_parts
                if type(error) is not ModelError or not is_first:
                    self._keep_partial_answer(call)
                    raise
                self._response_format = None
                yield self._end_event(call, "failed", error=str(error))
        for finding in self.findings:
            for event in finding_events(self.run_state, finding):
                yield event

    def _keep_partial_answer(self, call: ModelCall) -> None:
        """Keep the partial answer, unstructured or from the previous phase."""
        call.text_parts = [_visible_answer(call) or self.draft_answer]

    async def _decode_reply(self, call: ModelCall) -> None:
        if call.finding is None:
            # In a thread too, because validating a large value takes a while.
            await asyncio.to_thread(self._decode_answer, call, call.plan or PlanResult())
        self.finding = call.finding or self.finding
        self.findings += call.findings
        if self.finding is not None:
            return
        # Models judge the structured answer as it will be displayed.
        text = self.plan.final_answer or ""
        findings = await call.guardrails.model_checks.judge(text, "output", holding=True)
        self.findings += findings
        self.finding = next((finding for finding in findings if finding.blocks), None)
        self.run_state.judged_answer = text

    def _decode_answer(self, call: ModelCall, plan: PlanResult) -> None:
        try:
            # Unmasked: a marker inside JSON could break it.
            self.value = self.schema.decode(_answer_text(call, call.unmasked))
        except OutputDecodingFailed as error:
            if plan.turn.finish_reason != "length":
                raise
            raise OutputDecodingFailed(TRUNCATED, advice=TRUNCATED_ADVICE) from error
        # JSON escapes can hide a letter from a rule.
        inspected = call.guardrails.inspect_value(self.value, "output")
        self.value = inspected.value
        self.finding = inspected.result if inspected.is_blocked else None
        reported_rules = {finding.details["rule"] for finding in call.findings}
        call.findings += [
            finding
            for finding in inspected.findings
            if finding.details["rule"] not in reported_rules
        ]
        thought = self.draft_answer or plan.thought
        self.plan = replace(
            plan, thought=thought, final_answer=to_markdown(self.value), calls=()
        )

    # Request

    def _request(self, planner: ReActPlanner) -> ModelRequest:
        draft_state = AgentState.from_dict(self.run_state.state.to_dict())
        if self.draft_answer:
            draft_state.add_message("assistant", self.draft_answer)
        narrow = planner
        if planner.window is not None:  # the messages for repair have to fit too
            narrow = copy(planner)
            repair_json = json.dumps(self._repair_messages, ensure_ascii=False)
            narrow.window = max(0, planner.window - planner.count_tokens(repair_json))
        request = narrow.request(self.run_state.query, draft_state, [])
        parameters = {
            k: v for k, v in request.parameters.items() if k not in TOOL_ONLY_PARAMETERS
        }
        if self._response_format is not None:
            parameters["response_format"] = self._response_format
        messages = list(request.messages)
        first, *further = planner.pseudonymize(self._repair_messages)
        last = messages[-1] if messages else {"role": ""}
        if last["role"] == "user" and isinstance(last["content"], str):
            # Some models reject two messages of the same role in a row.
            messages[-1] = {**last, "content": f"{last['content']}\n\n{first['content']}"}
        else:
            messages.append(first)
        return replace(request, messages=[*messages, *further], parameters=parameters)

    def _request_repair(self, text: str, error: str) -> None:
        excerpt = replace_surrogates(text)[:MAX_QUOTED_CHARS] or "…"
        correction = _(
            "%(sentence)s Write the complete JSON again so that it matches the schema.",
            sentence=error,
        )
        self._repair_messages += [
            {"role": "assistant", "content": excerpt},
            {"role": "user", "content": correction},
        ]

    # Events

    def _end_event(self, call: ModelCall, status: str, **fields: Any) -> Event:
        plan = call.plan or PlanResult()
        # An answer that a model check holds back and that failed is never judged.
        is_hidden = status == "blocked" or (status == "failed" and call.holds_answer)
        text = "" if is_hidden else _visible_answer(call)
        return self.run_state.emit(
            EventType.STEP,
            step=call.step,
            kind="answer",
            status=status,
            # A failed answer is visible nowhere else.
            thought=text if status == "failed" else plan.thought,
            answer=text,
            finish_reason=plan.turn.finish_reason,
            **fields,
        )


def _visible_answer(call: ModelCall) -> str:
    """Return the text as it may be displayed."""
    return _filter_text(call, _answer_text(call, call.plan))


def _filter_text(call: ModelCall, text: str) -> str:
    return call.guardrails.without_length_limits().inspect(text, "output").text


def _answer_text(call: ModelCall, plan: PlanResult | None) -> str:
    """Return the answer; some providers enforce a schema by a call that wasn't offered."""
    plan = plan or PlanResult()
    if plan.final_answer is None and plan.calls:
        return plan.calls[0].arguments
    return plan.final_answer or "".join(call.text_parts)
