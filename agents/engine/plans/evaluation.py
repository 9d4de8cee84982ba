"""Looking at what came of a step: is it what was expected, and if not, what should change?"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from agents.engine.loop.handoff import Errand, Handoff
from agents.engine.loop.output_schema import OutputSchema

from ..errors import BadExpression
from ..events import Event, Type
from ..expressions import parse
from .context import Site
from .outcome import Finding, text_of
from .plan import ExecutionStep

MONITOR = "monitor"
MOST_SHOWN = 8_000
INSTRUCTIONS = """\
You check the results of a plan. You are told what a step was to do, what was expected of it \
and what came of it. Judge only that: whether the result is what was expected. Be strict about \
facts and lenient about form. Say why in one or two sentences. Where it is not as expected, \
say what the next plan should do differently. Write in the language of the expectation."""
FORM = {
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


class Check:
    """One look at one result, as a row of its own. Afterwards there is a `finding`.

    An expectation that is one `${expression}` is worked out; any other is judged by a model.
    """

    def __init__(
        self,
        site: Site,
        step: ExecutionStep,
        output: Any,
        task: int,
        attempt: int,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.site = site
        self.step = step
        self.output = output
        self.task = task
        self.attempt = attempt
        self.names = names or {}
        self.finding = Finding(is_met=False)

    async def events(self) -> Events:
        emit = self.site.emitter(self.task)
        number = self._known()
        if number is None:
            number = self.site.next_step()
            yield emit(Type.TASK, **self._about(number), name=self.step.name, work="check")
        elif (known := self._recorded(number)) is not None:
            self.finding = known
            if self.site.past.end(number) is None:
                yield self._ended(number)
            return
        async with aclosing(self._judged(number)) as judging:
            async for event in judging:
                yield event
        yield emit(Type.EVALUATION, **self._about(number), **self.finding.to_dict())
        yield self._ended(number)

    def _ended(self, number: int) -> Event:
        emit, words = self.site.emitter(self.task), self.finding.reason
        status = "done" if self.finding.is_met else "failed"
        return emit(Type.STEP, **self._about(number), status=status, observation=words)

    def _about(self, number: int) -> dict[str, Any]:
        return {
            "step": number,
            "turn": self.site.version,
            "plan": self.site.version,
            "kind": "evaluation",
            "attempt": self.attempt,
            "expected": self.step.expected_outcome,
        }

    def _known(self) -> int | None:
        for event in self.site.past.under(self.task, Type.TASK):
            if event.data["kind"] == "evaluation" and event.data["attempt"] == self.attempt:
                number: int = event.data["step"]
                return number
        return None

    def _recorded(self, number: int) -> Finding | None:
        for event in self.site.past.under(self.task, Type.EVALUATION):
            if event.data["step"] == number:
                return Finding.from_dict(event.data)
        return None

    async def _judged(self, number: int) -> Events:
        if (expression := self.step.expectation) is not None:
            self.finding = self._worked_out(expression)
            return
        judge = self.site.agent.in_role(MONITOR, INSTRUCTIONS, OutputSchema(FORM, name="check"))
        trail = self.site.trail_of(number)
        handoff = Handoff(MONITOR, lambda: judge, is_role=True)
        errand = Errand(handoff, self._question(), trail, number)
        async with aclosing(errand.events()) as events:
            async for event in events:
                yield event
        self.finding = _read(errand)

    def _worked_out(self, expression: str) -> Finding:
        try:
            is_met = bool(parse(expression).value({**self.names, "output": self.output}))
        except BadExpression as error:
            return Finding(is_met=False, reason=str(error))
        return Finding(is_met=is_met, reason=f"{expression} is {'' if is_met else 'not '}true.")

    def _question(self) -> str:
        shown = text_of(self.output)
        cut = shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]} [… cut]"
        what = self.step.tool or self.step.agent or "a person"
        return (
            f"Step: {self.step.name} ({what})\n"
            f"Expected: {self.step.expected_outcome}\n"
            f"Result:\n{cut}"
        )


def _read(errand: Errand) -> Finding:
    """What the model said; what cannot be checked does not pass."""
    if isinstance(errand.output, dict):
        return Finding.from_dict(errand.output)
    why = errand.result.text if errand.result else "nobody answered"
    return Finding(is_met=False, reason=f"It could not be checked: {why}")
