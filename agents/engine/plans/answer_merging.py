"""Merges a panel's answers: groups of agreement, differences, and the chosen answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.loop.handoff import Handoff, HandoffRun
from agents.engine.loop.output_schema import OutputSchema
from agents.engine.text import cut_text

from ..events import Event, EventType
from .arithmetic import AnswerValue, NotNumeric, calculate
from .context import PlanContext
from .similarity import group_equal

MergeStrategy = Literal["vote", "synthesis", "judge", "sum", "average"]
AnswerGroups = list[list[str]]

MODERATOR = "moderator"
JUDGE = "judge"
AGREEMENT = "agreement"
MAX_SHOWN_CHARS = 8_000
MAX_STORED_CHARS = 4_000

INSTRUCTIONS = """\
Several agents were asked the same question, each without knowing of the others. You compare \
their answers and nothing else. In "groups", put together the agents whose answers say the \
same thing, however it is put; every agent stands in exactly one group. In "differences", say \
in one sentence each what they differ in and who says what; nothing where they all say the \
same. "heading" is “Differences”, in the language of the question. Write in that \
language."""
JUDGE_INSTRUCTIONS = """\
 Then judge: "choice" is the agent whose answer is the best one, because it is right, well \
founded and answers what was asked; not because it is long. "reason" says why in one or two \
sentences."""
QUESTION_TEMPLATE = """\
Question: {question}

What they answered:

{answers}"""

_TEXT = {"type": "string"}
Events = AsyncGenerator[Event, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelMember:
    """One member of a panel: its answer, also as data, or why there is none."""

    name: str
    answer: str = ""
    output: Any = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The merged answer; `chosen` is empty in a tie, or if a new answer is written.

    `arithmetic` has the numbers and the result of a sum or an average.
    """

    merge: MergeStrategy
    groups: AnswerGroups
    chosen: str = ""
    reason: str = ""
    differences: tuple[str, ...] = ()
    heading: str = ""
    arithmetic: Mapping[str, Any] | None = None

    @property
    def is_agreed(self) -> bool:
        return len(self.groups) == 1

    @property
    def needs_synthesis(self) -> bool:
        """Whether one answer has to be written from several; also if they have no numbers."""
        is_written = self.merge in ("synthesis", "sum", "average")
        return is_written and not self.is_agreed and self.arithmetic is None

    def to_dict(self) -> dict[str, Any]:
        facts = {**asdict(self), "differences": list(self.differences)}
        if self.arithmetic is None:
            del facts["arithmetic"]
        return facts

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        facts = {name: value[name] for name in cls.__dataclass_fields__ if name in value}
        return cls(**{**facts, "differences": tuple(facts["differences"])})


class AnswerMerger:
    """Compares all answers in a step of its own; ends with a `merge_result`.

    Identical answers need no model.
    """

    def __init__(
        self, context: PlanContext, merge: MergeStrategy, members: Sequence[PanelMember]
    ) -> None:
        self.context = context
        self.merge = merge
        self.members = members
        self.answered = [member for member in members if not member.problem]
        self.exact: AnswerGroups = []
        self.arithmetic: dict[str, Any] | None = None
        self.not_numeric = ""
        self.merge_result = MergeResult(merge=merge, groups=[])

    async def events(self) -> Events:
        number = self._recorded_step()
        emit = self.context.event_factory(None)
        if number is None:
            number = self.context.next_step()
            step_fields = {"name": AGREEMENT, "work": "check", "what": self.merge}
            yield emit(EventType.TASK, **_event_fields(number), **step_fields)
        is_ended = self.context.recorded.end(number) is not None
        if not self._restore_result(number) and not is_ended:
            value = None
            size = _answer_chars(self.answered)
            answers = {member.name: _comparable_value(member) for member in self.answered}
            self.exact = await run_in_thread_if_large(size, group_equal, answers)
            self.arithmetic, self.not_numeric = await run_in_thread_if_large(
                size, self._calculate
            )
            if not self._needs_no_judge():
                handoff = self._handoff_run(number)
                async with aclosing(handoff.events()) as events:
                    async for event in events:
                        yield event
                value = handoff.output
            self.merge_result = self._merge_result(value if isinstance(value, dict) else {})
            yield self._evaluation_event(number)
        if not is_ended:
            step_fields = {"status": "done", "observation": self.merge_result.reason}
            yield emit(EventType.STEP, **_event_fields(number), **step_fields)

    def _evaluation_event(self, number: int) -> Event:
        return self.context.event_factory(None)(
            EventType.EVALUATION,
            **_event_fields(number),
            **self.merge_result.to_dict(),
            is_met=self.merge_result.is_agreed,
            feedback="",
            heads=[_member_record(member) for member in self.members],
        )

    def _recorded_step(self) -> int | None:
        for event in self.context.recorded.under(
            self.context.run_state.emit.parent, EventType.TASK
        ):
            if event.data["name"] == AGREEMENT and event.data["kind"] == "evaluation":
                number: int = event.data["step"]
                return number
        return None

    def _restore_result(self, number: int) -> bool:
        for event in self.context.recorded.under(
            self.context.run_state.emit.parent, EventType.EVALUATION
        ):
            if event.data["step"] == number:
                self.merge_result = MergeResult.from_dict(event.data)
                return True
        return False

    def _needs_no_judge(self) -> bool:
        """Whether no model is needed: the answers are equal, or data to be counted."""
        is_data = all(member.output is not None for member in self.answered)
        if self.arithmetic is not None:
            return True
        return len(self.exact) == 1 or (self.merge == "vote" and is_data)

    def _calculate(self) -> tuple[dict[str, Any] | None, str]:
        """Return the sum or average, or why the answers have none."""
        if self.merge not in ("sum", "average") or len(self.answered) < 2:
            return None, ""
        answers = [
            AnswerValue(name=member.name, text=member.answer, output=member.output)
            for member in self.answered
        ]
        try:
            facts = calculate(self.merge, answers).to_dict()
        except NotNumeric as error:
            return None, str(error)
        silent = [member.name for member in self.members if member.problem]
        return facts | {"left_out": [*facts["left_out"], *silent]}, ""

    def _handoff_run(self, number: int) -> HandoffRun:
        name = JUDGE if self.merge == "judge" else MODERATOR
        instructions = INSTRUCTIONS + (JUDGE_INSTRUCTIONS if self.merge == "judge" else "")
        schema = OutputSchema(self._answer_schema(), name=AGREEMENT)
        agent = self.context.agent.in_role(name, instructions, schema)
        handoff = Handoff(name, lambda: agent, is_role=True, reads_files=False)
        return HandoffRun(handoff, self._question(), self.context.step_state(number), number)

    def _answer_schema(self) -> dict[str, Any]:
        member_schema = {"type": "string", "enum": [member.name for member in self.answered]}
        fields: dict[str, Any] = {
            "groups": {"type": "array", "items": {"type": "array", "items": member_schema}},
            "differences": {"type": "array", "items": _TEXT},
            "heading": _TEXT,
        }
        if self.merge == "judge":
            fields |= {"choice": member_schema, "reason": _TEXT}
        closed = {"required": list(fields), "additionalProperties": False}
        return {"type": "object", "properties": fields, **closed}

    def _question(self) -> str:
        return QUESTION_TEMPLATE.format(
            question=self.context.run_state.query, answers=format_answers(self.answered)
        )

    def _merge_result(self, value: Mapping[str, Any]) -> MergeResult:
        groups = _merge_groups(self.exact, value.get("groups", ()))
        chosen, reason = self._choose(groups, value)
        return MergeResult(
            merge=self.merge,
            groups=groups,
            chosen=chosen,
            reason=reason,
            differences=tuple(value.get("differences", ())) if len(groups) > 1 else (),
            heading=value.get("heading", ""),
            arithmetic=self.arithmetic,
        )

    def _choose(self, groups: AnswerGroups, value: Mapping[str, Any]) -> tuple[str, str]:
        """Return the member whose answer is chosen, and why."""
        largest = groups[0]
        member_count = len(self.answered)
        if self.arithmetic is not None:
            return "", _arithmetic_sentence(self.arithmetic)
        if len(largest) == member_count:
            return largest[
                0
            ], "All members agree." if member_count > 1 else f"Only {largest[0]} answered."
        if self.merge == "judge":
            return value.get("choice", ""), value.get(
                "reason", "The judge didn't return a verdict."
            )
        if len(largest) * 2 > member_count and not self.not_numeric:
            reason = f"{len(largest)} of {member_count} agree: {', '.join(largest)}."
            return largest[0] if self.merge == "vote" else "", reason
        if self.merge == "vote":
            return "", f"No majority: the panel gave {len(groups)} different answers."
        if self.not_numeric:
            return "", f"{self.not_numeric} One answer was written from all of them instead."
        return "", f"The panel gave {len(groups)} different answers."


def format_answers(members: Sequence[PanelMember]) -> str:
    """Format each member's answer under its name."""
    return "\n\n".join(
        f"### {member.name}\n\n{cut_text(member.answer, MAX_SHOWN_CHARS)}" for member in members
    )


def _arithmetic_sentence(facts: Mapping[str, Any]) -> str:
    count, names = len(facts["numbers"]), ", ".join(facts["left_out"])
    is_sum = facts["operation"] == "sum"
    sentence = f"Sum of {count} answers." if is_sum else f"Average of {count} answers."
    return f"{sentence} Left out, without a clear number: {names}." if names else sentence


def _event_fields(number: int) -> dict[str, Any]:
    return {"step": number, "turn": 1, "plan": 1, "kind": "evaluation", "expected": ""}


def _answer_chars(members: Sequence[PanelMember]) -> int:
    return sum(len(member.answer) for member in members)


def _comparable_value(member: PanelMember) -> Any:
    return member.answer if member.output is None else member.output


def _merge_groups(exact: AnswerGroups, reply_groups: Sequence[Sequence[str]]) -> AnswerGroups:
    """Merge exact groups with those that a model considers equal."""
    groups = exact
    grouped_names = set[str]()
    for names in reply_groups:
        new = set(names) - grouped_names
        grouped_names |= new
        together = [group for group in groups if new & set(group)]
        separate = [group for group in groups if group not in together]
        groups = [*separate, sum(together, [])] if together else groups
    order = {name: position for position, group in enumerate(exact) for name in group}
    groups = [sorted(group, key=order.__getitem__) for group in groups]
    return sorted(groups, key=lambda group: (-len(group), order[group[0]]))


def _member_record(member: PanelMember) -> dict[str, str]:
    answer = cut_text(member.answer, MAX_STORED_CHARS)
    return {"name": member.name, "answer": answer, "problem": member.problem}
