"""Checks a step's result against its expectation and says what to change."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from agents.engine.loop.handoff import Handoff, HandoffRun
from agents.engine.loop.output.output_schema import OutputSchema
from agents.engine.text import cut_text

from ...errors import BadExpression
from ...events import Event, EventType
from ...expressions import parse
from ...sentences import Sentence as _
from ..definition.plan import ExecutionStep
from .context import PlanContext
from .outcome import EvaluationResult, to_text

MONITOR = "monitor"
MAX_SHOWN_CHARS = 8_000
INSTRUCTIONS = """\
You check the results of a plan. You are told what a step was to do, what was expected of it \
and what came of it. Judge only that: whether the result is what was expected. Be strict about \
facts and lenient about form. Say why in one or two sentences. Where it is not as expected, \
say what the next plan should do differently. Write in the language of the expectation."""
OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "is_met": {"type": "boolean", "description": "Whether the result is as expected."},
        "reason": {"type": "string", "description": "Why, in one or two sentences."},
        "feedback": {"type": "string", "description": "What the next plan should change."},
    },
    "required": ["is_met", "reason", "feedback"],
    "additionalProperties": False,
}

Events = AsyncGenerator[Event, None]


class OutcomeCheck:
    """Checks one result in a step of its own; ends with a `finding`.

    An expectation that is one `${expression}` is evaluated; any other is judged by a model.
    """

    def __init__(
        self,
        context: PlanContext,
        step: ExecutionStep,
        output: Any,
        task: int,
        attempt: int,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.context = context
        self.step = step
        self.output = output
        self.task = task
        self.attempt = attempt
        self.names = names or {}
        self.finding = EvaluationResult(is_met=False)

    async def events(self) -> Events:
        emit = self.context.event_factory(self.task)
        tasks = self.context.recorded.under(self.task, EventType.TASK)
        recorded_number: int | None = next(
            (
                event.data["step"]
                for event in tasks
                if event.data["kind"] == "evaluation" and event.data["attempt"] == self.attempt
            ),
            None,
        )
        number = recorded_number or self.context.next_step()
        if recorded_number is None:
            yield emit(
                EventType.TASK, **self._event_fields(number), name=self.step.name, work="check"
            )
        for event in self.context.recorded.under(self.task, EventType.EVALUATION):
            if event.data["step"] == number:
                self.finding = EvaluationResult.from_dict(event.data)
                if self.context.recorded.end(number) is None:
                    yield self._end_event(number)
                return
        if (expression := self.step.expectation) is not None:
            self.finding = self._evaluate_expression(expression)
        else:
            schema = OutputSchema(OUTPUT_SCHEMA, name="check")
            judge = self.context.agent.in_role(MONITOR, INSTRUCTIONS, schema)
            handoff = Handoff(MONITOR, lambda: judge, is_role=True, reads_files=False)
            performer = self.step.tool or self.step.agent or "a person"
            question = (
                f"Step: {self.step.name} ({performer})\n"
                f"Expected: {self.step.expected_outcome}\n"
                f"Result:\n{cut_text(to_text(self.output), MAX_SHOWN_CHARS)}"
            )
            judge_run = HandoffRun(handoff, question, self.context.step_state(number), number)
            async with aclosing(judge_run.events()) as events:
                async for event in events:
                    yield event
            if isinstance(judge_run.output, dict):
                self.finding = EvaluationResult.from_dict(judge_run.output)
            else:  # what can't be checked doesn't pass
                why = judge_run.result.text if judge_run.result else _("No answer.")
                reason = _("The result couldn't be checked: %(why)s", why=why)
                self.finding = EvaluationResult(is_met=False, reason=reason)
        yield emit(EventType.EVALUATION, **self._event_fields(number), **self.finding.to_dict())
        yield self._end_event(number)

    def _end_event(self, number: int) -> Event:
        emit = self.context.event_factory(self.task)
        reason = self.finding.reason
        status = "done" if self.finding.is_met else "failed"
        return emit(
            EventType.STEP, **self._event_fields(number), status=status, observation=reason
        )

    def _event_fields(self, number: int) -> dict[str, Any]:
        return {
            "step": number,
            "turn": self.context.version,
            "plan": self.context.version,
            "kind": "evaluation",
            "attempt": self.attempt,
            "expected": self.step.expected_outcome,
        }

    def _evaluate_expression(self, expression: str) -> EvaluationResult:
        try:
            is_met = bool(parse(expression).value({**self.names, "output": self.output}))
        except BadExpression as error:
            return EvaluationResult(is_met=False, reason=str(error))
        reason = (
            _("Condition met: %(condition)s.", condition=expression)
            if is_met
            else _("Condition not met: %(condition)s.", condition=expression)
        )
        return EvaluationResult(is_met=is_met, reason=reason)
