"""Merges a panel's answers: groups of agreement, differences, and the chosen answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.loop.handoff import Handoff, HandoffRun
from agents.engine.loop.output.output_schema import OutputSchema
from agents.engine.text import cut_text

from ...events import Event, EventType
from ...sentences import Sentence as _
from ..execution.context import PlanContext
from .arithmetic import AnswerValue, NotNumeric, calculate
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
        tasks = self.context.recorded.under(self.context.run_state.emit.parent, EventType.TASK)
        row = {"name": AGREEMENT, "kind": "evaluation"}
        recorded_number: int | None = next(
            (event.data["step"] for event in tasks if row.items() <= event.data.items()), None
        )
        number = recorded_number or self.context.next_step()
        emit = self.context.event_factory(None)
        if recorded_number is None:
            step_fields = {"name": AGREEMENT, "work": "check", "what": self.merge}
            yield emit(EventType.TASK, **_event_fields(number), **step_fields)
        is_ended = self.context.recorded.end(number) is not None
        if not self._restore_result(number) and not is_ended:
            size = sum(len(member.answer) for member in self.answered)
            answers = {
                member.name: member.answer if member.output is None else member.output
                for member in self.answered
            }
            self.exact = await run_in_thread_if_large(size, group_equal, answers)
            self.arithmetic, self.not_numeric = await run_in_thread_if_large(
                size, self._calculate
            )
            # Equal answers, and data to be counted, need no model.
            is_data = all(member.output is not None for member in self.answered)
            is_countable = len(self.exact) == 1 or (self.merge == "vote" and is_data)
            verdict = None
            if self.arithmetic is None and not is_countable:
                handoff = self._handoff_run(number)
                async with aclosing(handoff.events()) as events:
                    async for event in events:
                        yield event
                verdict = handoff.output
            self.merge_result = self._merge(verdict if isinstance(verdict, dict) else {})
            yield emit(
                EventType.EVALUATION,
                **_event_fields(number),
                **self.merge_result.to_dict(),
                is_met=self.merge_result.is_agreed,
                feedback="",
                heads=[
                    {
                        "name": member.name,
                        "answer": cut_text(member.answer, MAX_STORED_CHARS),
                        "problem": member.problem,
                    }
                    for member in self.members
                ],
            )
        if not is_ended:
            step_fields = {"status": "done", "observation": self.merge_result.reason}
            yield emit(EventType.STEP, **_event_fields(number), **step_fields)

    def _restore_result(self, number: int) -> bool:
        for event in self.context.recorded.under(
            self.context.run_state.emit.parent, EventType.EVALUATION
        ):
            if event.data["step"] == number:
                self.merge_result = MergeResult.from_dict(event.data)
                return True
        return False

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
        member_schema = {"type": "string", "enum": [member.name for member in self.answered]}
        fields: dict[str, Any] = {
            "groups": {"type": "array", "items": {"type": "array", "items": member_schema}},
            "differences": {"type": "array", "items": _TEXT},
            "heading": _TEXT,
        }
        if self.merge == "judge":
            fields |= {"choice": member_schema, "reason": _TEXT}
        closed = {"required": list(fields), "additionalProperties": False}
        schema = {"type": "object", "properties": fields, **closed}
        agent = self.context.agent.in_role(
            name, instructions, OutputSchema(schema, name=AGREEMENT)
        )
        handoff = Handoff(name, lambda: agent, is_role=True, reads_files=False)
        question = QUESTION_TEMPLATE.format(
            question=self.context.run_state.query, answers=format_answers(self.answered)
        )
        return HandoffRun(handoff, question, self.context.step_state(number), number)

    def _merge(self, verdict: Mapping[str, Any]) -> MergeResult:
        # Exact groups are merged with those that the model considers equal.
        groups = self.exact
        grouped_names = set[str]()
        for names in verdict.get("groups", ()):
            new = set(names) - grouped_names
            grouped_names |= new
            together = [group for group in groups if new & set(group)]
            separate = [group for group in groups if group not in together]
            groups = [*separate, sum(together, [])] if together else groups
        order = {name: position for position, group in enumerate(self.exact) for name in group}
        groups = [sorted(group, key=order.__getitem__) for group in groups]
        groups = sorted(groups, key=lambda group: (-len(group), order[group[0]]))
        chosen, reason = self._choose(groups, verdict)
        return MergeResult(
            merge=self.merge,
            groups=groups,
            chosen=chosen,
            reason=reason,
            differences=tuple(verdict.get("differences", ())) if len(groups) > 1 else (),
            heading=verdict.get("heading", ""),
            arithmetic=self.arithmetic,
        )

    def _choose(self, groups: AnswerGroups, verdict: Mapping[str, Any]) -> tuple[str, str]:
        """Return the member whose answer is chosen, and why."""
        largest = groups[0]
        member_count = len(self.answered)
        if self.arithmetic is not None:
            count = len(self.arithmetic["numbers"])
            sentence = (
                _("Sum of %(count)s answers.", count=count)
                if self.arithmetic["operation"] == "sum"
                else _("Average of %(count)s answers.", count=count)
            )
            if not self.arithmetic["left_out"]:
                return "", sentence
            return "", _(
                "%(sentence)s Left out, without a clear number: %(names)s.",
                sentence=sentence,
                names=", ".join(self.arithmetic["left_out"]),
            )
        if member_count == 1:
            return largest[0], _("Only %(name)s answered.", name=largest[0])
        if len(largest) == member_count:
            return largest[0], _("All members agree.")
        if self.merge == "judge":
            no_verdict = _("The judge didn't return a verdict.")
            return verdict.get("choice", ""), verdict.get("reason", no_verdict)
        if len(largest) * 2 > member_count and not self.not_numeric:
            reason = _(
                "%(count)s of %(all)s agree: %(names)s.",
                count=len(largest),
                all=member_count,
                names=", ".join(largest),
            )
            return largest[0] if self.merge == "vote" else "", reason
        if self.merge == "vote":
            return "", _(
                "No majority: the panel gave %(count)s different answers.", count=len(groups)
            )
        if self.not_numeric:
            return "", _(
                "%(why)s All answers were combined into one instead.", why=self.not_numeric
            )
        return "", _("The panel gave %(count)s different answers.", count=len(groups))


def format_answers(members: Sequence[PanelMember]) -> str:
    """Format each member's answer under its name."""
    return "\n\n".join(
        f"### {member.name}\n\n{cut_text(member.answer, MAX_SHOWN_CHARS)}" for member in members
    )


def _event_fields(number: int) -> dict[str, Any]:
    return {"step": number, "turn": 1, "plan": 1, "kind": "evaluation", "expected": ""}
