"""What a person is asked, as it is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.engine.plans import ExecutionPlan, ExecutionStep, diff_steps
from agents.models import Approval
from agents.runs.plan_edits import (
    MAX_EDITABLE_STEPS,
    WHOLE_PLAN,
    DraftStep,
    PlanCapabilities,
    PlanDraft,
    value_text,
)
from agents.runs.projection import decode_json

from .formatting import format_json
from .links import chat_url
from .markdown import render_exact, reveal_invisible
from .plan_lines import PlanLine, change_summary, plan_lines
from .plan_view import MAX_LINES
from .structured_output import OutputView, split_tables

# What there is room for in a row: characters of the arguments, and of the HTML that shows them.
MAX_ARGUMENTS_CHARS, MAX_HTML_CHARS = 20_000, 40_000
MAX_EXCERPT_CHARS = 1_000


@dataclass(frozen=True)
class ApprovalView:
    """What a person is asked about a call, and what they said."""

    approval: Approval
    may_decide: bool = True
    is_inside: bool = True  # False for one who is asked, and sees nothing else of the run
    typed: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    draft: PlanDraft | None = None  # a plan as somebody is changing it
    problems: Mapping[int, list[str]] = field(default_factory=dict)  # of its steps
    is_in_row: bool = False  # True where it stands in a run, on a page that is sent in frames

    def __getattr__(self, name: str) -> Any:
        return getattr(self.approval, name)

    @property
    def chat_url(self) -> str:
        return chat_url(self.approval.run)

    @property
    def why_label(self) -> str:
        return self.approval.get_why_display()

    @property
    def verdict_label(self) -> str:
        words = {
            Approval.Verdict.APPROVED: _("retry approved"),
            Approval.Verdict.REJECTED: _("marked as done"),
        }
        if self.approval.is_unknown and self.approval.verdict in words:
            return words[self.approval.verdict]
        return self.approval.get_verdict_display()

    @property
    def question(self) -> str:
        """What a person is asked, in the words of the agent."""
        asked = decode_json(self.approval.arguments)
        return str(asked.get("question", "")) if isinstance(asked, dict) else self.readable

    @property
    def question_parts(self) -> list[OutputView]:
        """The question as it is read, its rows as tables, and nothing in it unseen."""
        return [_reveal_part(part) for part in split_tables(self.question)]

    @property
    def shared_with(self) -> str:
        """The group that a question would go to."""
        asked = decode_json(self.approval.arguments)
        return reveal_invisible(str(asked.get("role", ""))) if isinstance(asked, dict) else ""

    @property
    def asker_name(self) -> str:
        asker = self.approval.run.user
        return asker.get_username() if asker else ""

    @cached_property
    def has_recipients(self) -> bool:
        """Whether anybody is known for what is asked for; else it is left to whoever asked."""
        return self.approval.role_members.exists()

    @cached_property
    def readable(self) -> str:
        """The arguments, whole: nobody can agree to what is left out."""
        return format_json(decode_json(self.approval.arguments))

    @property
    def editable(self) -> str:
        return self.typed.get("arguments") or self.readable

    @property
    def is_changed(self) -> bool:
        return self.editable != self.readable

    @cached_property
    def exact(self) -> SafeString:
        return render_exact(self.readable)

    @cached_property
    def is_long(self) -> bool:
        """Whether it is more than a row has room for: it is decided on a page of its own."""
        if not self.is_in_row or len(self.approval.arguments) <= MAX_EXCERPT_CHARS:
            return False
        return (
            len(self.approval.arguments) > MAX_ARGUMENTS_CHARS
            or len(self.exact) > MAX_HTML_CHARS
        )

    @property
    def excerpt(self) -> SafeString:
        """The beginning of it, for whoever looks at the run."""
        return render_exact(self.readable[:MAX_EXCERPT_CHARS])

    @property
    def size(self) -> int:
        return len(self.readable)

    @cached_property
    def lines(self) -> list[PlanLine]:
        """The steps of a plan that a person is asked about."""
        return plan_lines(self.plan)

    @cached_property
    def plan(self) -> ExecutionPlan:
        return _parse_plan(self.approval.arguments)

    @property
    def first_lines(self) -> list[PlanLine]:
        return self.lines[:MAX_LINES]

    @property
    def more_lines(self) -> int:
        return len(self.lines) - len(self.first_lines)

    @property
    def description(self) -> str:
        return self.plan.description

    @cached_property
    def steps(self) -> "list[EditedStep]":
        """Those of a plan that can be changed one by one."""
        draft = self.draft or PlanDraft.of(self.plan)
        if len(self.lines) > MAX_EDITABLE_STEPS:
            return []
        return [EditedStep(step, draft, self) for step in draft.steps]

    @property
    def plan_problems(self) -> list[str]:
        """What is wrong with a plan as a whole."""
        return list(self.problems.get(WHOLE_PLAN, []))

    @property
    def keys(self) -> str:
        return " ".join(str(step.draft.key) for step in self.steps)

    @cached_property
    def means(self) -> PlanCapabilities:
        return PlanCapabilities.of(self.approval)

    @cached_property
    def changes(self) -> dict[str, str]:
        """What a person has made of the plan."""
        changed = self.approval.new_arguments
        if not changed:
            return {}
        return diff_steps(self.plan.named().steps, _parse_plan(changed).named().steps)

    @property
    def difference(self) -> str:
        return change_summary(self.changes)

    @property
    def changed(self) -> list[PlanLine]:
        """What is not as the agent had it, step by step."""
        plan = _parse_plan(self.approval.new_arguments)
        return [
            line for line in plan_lines(plan, self.changes) if line.change not in ("", "kept")
        ]

    @property
    def decided_by_name(self) -> str:
        person = self.approval.decided_by
        return person.get_username() if person else ""


def _reveal_part(part: OutputView) -> OutputView:
    return replace(
        part,
        text=reveal_invisible(part.text),
        caption=reveal_invisible(part.caption),
        items=tuple(map(_reveal_part, part.items)),
        fields=tuple(
            (reveal_invisible(name), _reveal_part(value)) for name, value in part.fields
        ),
        columns=tuple(
            replace(column, name=reveal_invisible(column.name)) for column in part.columns
        ),
        rows=tuple(tuple(map(_reveal_part, row)) for row in part.rows),
    )


def _parse_plan(written: str) -> ExecutionPlan:
    """As far as it can be read: what is masked may not be."""
    value = decode_json(written)
    return ExecutionPlan.from_dict(value if isinstance(value, dict) else {}).named()


@dataclass(frozen=True)
class EditedStep:
    """A step of a plan with fields to change it."""

    draft: DraftStep
    whole: PlanDraft
    approval: ApprovalView

    @property
    def name(self) -> str:
        return self.draft.facts["name"]

    @property
    def prefix(self) -> str:
        """What the names of its fields begin with."""
        return f"plan-{self.approval.pk}-{self.draft.key}"

    @property
    def line(self) -> PlanLine:
        step = ExecutionStep.from_dict(self.draft.facts)
        return PlanLine(place=self.draft.key + 1, step=step)

    @property
    def is_question(self) -> bool:
        return self.draft.what == "ask:"

    @property
    def arguments(self) -> list[tuple[str, str]]:
        given = self.draft.facts.get("arguments", {})
        names = self.approval.means.arguments(self.draft.facts)
        return [(name, value_text(given.get(name))) for name in names]

    @property
    def others(self) -> list[tuple[str, bool]]:
        """The other steps, and whether this one waits for them."""
        waits = self.draft.facts.get("depends_on", ())
        names = [step.facts["name"] for step in self.whole.steps if step is not self.draft]
        return [(name, name in waits) for name in names if name]

    @property
    def waits_for(self) -> str:
        return ", ".join(name for name, is_waited_for in self.others if is_waited_for)

    @property
    def problems(self) -> list[str]:
        return self.approval.problems.get(self.draft.key, [])
