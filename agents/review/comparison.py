"""Compares two runs: where they diverge, their setups and results."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.events import EventType
from agents.models import AgentStep, Run
from agents.review.alignment import align
from agents.web.presentation import RunView, StepView
from agents.web.presentation.formatting import format_value
from agents.web.presentation.text_diff import TextDiff, TextDiffer, split_words

DifferenceReason = Literal[
    "",
    "yet",
    "kind",
    "tool",
    "arguments",
    "plan",
    "observation",
    "words",
    "only",
    "ended",
]
RowKind = Literal["same", "coming", "shown"]
RunStart = Mapping[str, Any]
ComparedTexts = tuple[str, str, str, bool]  # label, both texts, whether they are code

TOOL = AgentStep.Kind.TOOL
PLAN_KINDS = {AgentStep.Kind.PLAN, AgentStep.Kind.TASK, AgentStep.Kind.EVALUATION}
MAX_SIGNATURE_WORDS = 64
MAX_SIGNATURE_CHARS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedText:
    """A text of a step or setup in both runs."""

    label: str
    difference: TextDiff
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """A step of one run next to the matching one of the other, if any."""

    at: int
    left: StepView | None
    right: StepView | None
    why: DifferenceReason
    texts: Sequence[ComparedText] = ()

    @property
    def differs(self) -> bool:
        return self.why not in {"", "yet"}

    @property
    def is_unpaired(self) -> bool:
        return self.left is None or self.right is None

    @property
    def kind(self) -> RowKind:
        if not self.why:
            return "same"
        return "coming" if self.why == "yet" and self.is_unpaired else "shown"

    @property
    def step(self) -> StepView:
        step = self.left or self.right
        if step is None:
            raise ValueError("A row has a step on one side at least.")
        return step

    @property
    def why_label(self) -> str:
        tool = self.step.action
        return {
            "": _("Unchanged"),
            "yet": _("One run hasn't reached this step yet"),
            "kind": _("One run continued where the other answered"),
            "tool": _("Different tool"),
            "arguments": _("Different arguments for %(tool)s") % {"tool": tool},
            "plan": _("Different plan"),
            "observation": _("Different result"),
            "words": _("Different wording"),
            "only": _("Only in one run"),
            "ended": _("The other run had already ended"),
        }[self.why]


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Consecutive rows that are the same, pending or different."""

    kind: RowKind
    rows: list[ComparisonRow]

    @property
    def label(self) -> str:
        """The label of a collapsed group; different rows aren't collapsed."""
        count = len(self.rows)
        if self.kind == "same":
            sentence = ngettext("%(count)d identical step", "%(count)d identical steps", count)
        else:
            sentence = ngettext(
                "%(count)d step that one run hasn't reached yet",
                "%(count)d steps that one run hasn't reached yet",
                count,
            )
        return sentence % {"count": count}


@dataclass(frozen=True)
class Comparison:
    left: RunView
    right: RunView

    @cached_property
    def rows(self) -> list[ComparisonRow]:
        pairs = align(self._signatures(self.left), self._signatures(self.right), _similarity)
        ends = [_last_row(pairs, side) for side in (0, 1)]
        return [self._row(at, pair, ends) for at, pair in enumerate(pairs, start=1)]

    @property
    def row_groups(self) -> list[RowGroup]:
        groups = groupby(self.rows, key=lambda row: row.kind)
        return [RowGroup(kind, list(rows)) for kind, rows in groups]

    @cached_property
    def first(self) -> ComparisonRow | None:
        """The row where the runs diverge."""
        return next((row for row in self.rows if row.differs), None)

    @cached_property
    def answer(self) -> TextDiff:
        return self._differ.compare(_answer_text(self.left), _answer_text(self.right))

    @cached_property
    def setup(self) -> list[ComparedText]:
        """Differences in the setup, as recorded at the start."""
        return self._diff_texts(_setup_texts(self.left, self.right))

    @property
    def sides(self) -> list[RunView]:
        return [self.left, self.right]

    @property
    def question(self) -> str:
        """The question, if both have the same."""
        return self.left.run.query if self.left.run.query == self.right.run.query else ""

    @property
    def is_masked(self) -> bool:
        return any(view.masker for view in self.sides)

    @property
    def is_live(self) -> bool:
        return self.left.run.is_live or self.right.run.is_live

    @property
    def is_running(self) -> bool:
        """Whether anything is running; nothing is while waiting for a person."""
        return any(view.run.status == Run.Status.RUNNING for view in self.sides)

    @property
    def answers_differ(self) -> bool:
        return not self.is_live and not self.answer.is_equal

    @cached_property
    def _differ(self) -> TextDiffer:
        return TextDiffer()

    def _signatures(self, view: RunView) -> list["_StepSignature"]:
        return [_StepSignature(step) for step in view.steps]

    def _row(self, at: int, pair: "_Pair", ends: Sequence[int]) -> ComparisonRow:
        left, right = (None if signature is None else signature.step for signature in pair)
        if left is None or right is None:
            why = self._unpaired_reason(at, ends, side=0 if left is None else 1)
            return ComparisonRow(at=at, left=left, right=right, why=why)
        why = _difference_reason(left, right)
        row = ComparisonRow(at=at, left=left, right=right, why=why)
        return (
            replace(row, texts=self._diff_texts(_step_texts(left, right)))
            if row.differs
            else row
        )

    def _unpaired_reason(self, at: int, ends: Sequence[int], side: int) -> DifferenceReason:
        """Return why there is no step on this side."""
        if at < ends[side]:
            return "only"
        return "yet" if self.sides[side].run.is_live else "ended"

    def _diff_texts(self, texts: Iterable[ComparedTexts]) -> list[ComparedText]:
        return [
            ComparedText(
                label=label, difference=self._differ.compare(left, right), is_code=is_code
            )
            for label, left, right, is_code in texts
            if left != right
        ]


class _StepSignature:
    """A step with the features used to match it with another."""

    __slots__ = ("name", "signs", "step")

    def __init__(self, step: StepView) -> None:
        is_tool = step.kind == TOOL
        text = json.dumps(step.action_input, ensure_ascii=False) if is_tool else step.thought
        self.step = step
        sub_agent = step.agent_name if step.depth else ""
        is_named = is_tool or step.kind in PLAN_KINDS
        self.name = (step.kind, step.depth, sub_agent, step.action if is_named else "")
        self.signs = frozenset(split_words(text[:MAX_SIGNATURE_CHARS])[:MAX_SIGNATURE_WORDS])


_Pair = tuple[_StepSignature | None, _StepSignature | None]


def _similarity(left: _StepSignature, right: _StepSignature) -> float:
    """Return a similarity from 0 to 1; the action weighs more than the text."""
    if left.name == right.name:
        either = len(left.signs | right.signs)
        return 0.5 + 0.5 * (len(left.signs & right.signs) / either if either else 1.0)
    kinds = {left.name[0], right.name[0]}
    if left.name[1] != right.name[1] or {TOOL, *PLAN_KINDS} & kinds and len(kinds) > 1:
        return 0.0
    return 0.2 if AgentStep.Kind.GUARDRAIL not in kinds else 0.0


def _last_row(pairs: Sequence[_Pair], side: int) -> int:
    """Return the row of the last step on this side."""
    rows = [at for at, pair in enumerate(pairs, start=1) if pair[side] is not None]
    return rows[-1] if rows else 0


def _difference_reason(left: StepView, right: StepView) -> DifferenceReason:
    """Return how two steps differ first; a running one may still become equal."""
    is_open = left.is_open or right.is_open
    if left.kind == right.kind == TOOL:
        if left.action != right.action:
            return "tool"
        if left.action_input != right.action_input:
            return "arguments"
    elif is_open:
        return "yet"
    elif left.kind != right.kind:
        return "kind"
    elif left.thought != right.thought:
        return "words"
    elif left.kind in PLAN_KINDS and left.action_input != right.action_input:
        return "plan"
    same = left.status == right.status and left.observation == right.observation
    return "yet" if is_open else "" if same else "observation"


def _step_texts(left: StepView, right: StepView) -> list[ComparedTexts]:
    return [
        (_("Thought"), _thought_text(left), _thought_text(right), False),
        (_("Arguments"), _arguments_text(left), _arguments_text(right), True),
        (_("Observation"), left.result_text, right.result_text, True),
    ]


def _thought_text(step: StepView) -> str:
    """Return the thought; that of a call is in the row above."""
    return "" if step.kind == TOOL else format_value(step.thought)


def _arguments_text(step: StepView) -> str:
    return format_value(step.action_input) if step.kind in {TOOL, *PLAN_KINDS} else ""


def _answer_text(view: RunView) -> str:
    return format_value(view.run.answer if view.run.output is None else view.run.output)


def _setup_texts(left: RunView, right: RunView) -> list[ComparedTexts]:
    """Return both runs' setup texts."""
    left_start = _start_data(left)
    right_start = _start_data(right)
    left_run = left.run
    right_run = right.run
    labels = {
        "model": _("Model"),
        "dialect": _("Tool call format"),
        "route": _("Route"),
        "max_steps": _("Max steps"),
        "instructions": _("Instructions"),
    }
    texts = [
        (_("Question"), left_run.query, right_run.query),
        (_("Agent"), left_run.agent_name, right_run.agent_name),
        *(
            (label, _setting(left_start, name), _setting(right_start, name))
            for name, label in labels.items()
        ),
        (_("Effort and temperature"), _tuning(left), _tuning(right)),
        (
            _("Chat history"),
            _message_count(left_run.history),
            _message_count(right_run.history),
        ),
        (_("Fallback models"), _fallback_models(left_run), _fallback_models(right_run)),
        (
            _("Disabled guardrails"),
            _disabled_guardrails(left_run),
            _disabled_guardrails(right_run),
        ),
    ]
    return [*((*text, False) for text in texts), *_tool_texts(left_start, right_start)]


def _start_data(view: RunView) -> RunStart:
    first = view.run.events.filter(type=EventType.RUN_STARTED).order_by("seq").first()
    return view.visible_row(first).data if first else {}


def _setting(start_data: RunStart, name: str) -> str:
    return str(start_data.get(name, ""))


def _tuning(view: RunView) -> str:
    return view.tuning_label or _("agent default")


def _message_count(history: Sequence[Any]) -> str:
    sentence = ngettext("%(count)d message", "%(count)d messages", len(history))
    return sentence % {"count": len(history)}


def _fallback_models(run: Run) -> str:
    if "fallback_models" not in run.overrides:
        return _("agent default")
    return ", ".join(run.overrides["fallback_models"].split()) or _("none")


def _disabled_guardrails(run: Run) -> str:
    return ", ".join(run.overrides.get("guardrails_off", ())) or _("none")


def _tool_texts(left_start: RunStart, right_start: RunStart) -> list[ComparedTexts]:
    left_specs = _tool_specs(left_start)
    right_specs = _tool_specs(right_start)
    texts = []
    for name in sorted({*left_specs, *right_specs}):
        tools = left_specs.get(name), right_specs.get(name)
        left_text, right_text = map(format_value if all(tools) else _offered_text, tools)
        texts.append((_("Tool %(name)s") % {"name": name}, left_text, right_text, all(tools)))
    return texts


def _offered_text(tool: Any) -> str:
    return _("available") if tool else _("not available")


def _tool_specs(start_data: RunStart) -> dict[str, Any]:
    return {tool["function"]["name"]: tool["function"] for tool in start_data.get("tools", ())}
