"""Compares two runs: where they diverge, their setups and results."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.events import EventType
from agents.models import AgentStep, Run
from agents.review.replays.alignment import align
from agents.web.presentation import RunView, StepView
from agents.web.presentation.formats.formatting import format_value
from agents.web.presentation.formats.text_diff import TextDiff, TextDiffer, split_words

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
        pairs = align(
            [_StepSignature(step) for step in self.left.steps],
            [_StepSignature(step) for step in self.right.steps],
            _similarity,
        )
        # The row of the last step on each side.
        last_rows = [
            max((row for row, pair in enumerate(pairs, start=1) if pair[side]), default=0)
            for side in (0, 1)
        ]
        rows = []
        for number, pair in enumerate(pairs, start=1):
            first, second = (signature.step if signature else None for signature in pair)
            why: DifferenceReason
            texts: list[ComparedText] = []
            if first is None or second is None:
                side = 0 if first is None else 1
                if number < last_rows[side]:
                    why = "only"
                else:
                    why = "yet" if self.sides[side].run.is_live else "ended"
            else:
                why = _difference_reason(first, second)
                if why not in {"", "yet"}:
                    texts = self._diff_texts(
                        [
                            (_("Thought"), _thought_text(first), _thought_text(second), False),
                            (
                                _("Arguments"),
                                _arguments_text(first),
                                _arguments_text(second),
                                True,
                            ),
                            (_("Observation"), first.result_text, second.result_text, True),
                        ]
                    )
            rows.append(
                ComparisonRow(at=number, left=first, right=second, why=why, texts=texts)
            )
        return rows

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
        left_start = _start_data(self.left)
        right_start = _start_data(self.right)
        left_texts = _setup_texts(self.left, left_start)
        right_texts = _setup_texts(self.right, right_start)
        return self._diff_texts(
            [
                *(
                    (label, text, right_texts[label], False)
                    for label, text in left_texts.items()
                ),
                *_tool_texts([left_start, right_start]),
            ]
        )

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

    def _diff_texts(self, texts: Iterable[ComparedTexts]) -> list[ComparedText]:
        return [
            ComparedText(
                label=label, difference=self._differ.compare(first, second), is_code=is_code
            )
            for label, first, second, is_code in texts
            if first != second
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


def _similarity(first: _StepSignature, second: _StepSignature) -> float:
    """Return a similarity from 0 to 1; the action weighs more than the text."""
    if first.name == second.name:
        either = len(first.signs | second.signs)
        return 0.5 + 0.5 * (len(first.signs & second.signs) / either if either else 1.0)
    kinds = {first.name[0], second.name[0]}
    if first.name[1] != second.name[1] or {TOOL, *PLAN_KINDS} & kinds and len(kinds) > 1:
        return 0.0
    return 0.2 if AgentStep.Kind.GUARDRAIL not in kinds else 0.0


def _difference_reason(first: StepView, second: StepView) -> DifferenceReason:
    """Return how two steps differ first; a running one may still become equal."""
    is_open = first.is_open or second.is_open
    if first.kind == second.kind == TOOL:
        if first.action != second.action:
            return "tool"
        if first.action_input != second.action_input:
            return "arguments"
    elif is_open:
        return "yet"
    elif first.kind != second.kind:
        return "kind"
    elif first.thought != second.thought:
        return "words"
    elif first.kind in PLAN_KINDS and first.action_input != second.action_input:
        return "plan"
    if is_open:
        return "yet"
    is_same = first.status == second.status and first.observation == second.observation
    return "" if is_same else "observation"


def _thought_text(step: StepView) -> str:
    """Return the thought; that of a call is in the row above."""
    return "" if step.kind == TOOL else format_value(step.thought)


def _arguments_text(step: StepView) -> str:
    return format_value(step.action_input) if step.kind in {TOOL, *PLAN_KINDS} else ""


def _answer_text(view: RunView) -> str:
    return format_value(view.run.answer if view.run.output is None else view.run.output)


def _start_data(view: RunView) -> RunStart:
    first = view.run.events.filter(type=EventType.RUN_STARTED).order_by("seq").first()
    return view.visible_row(first).data if first else {}


def _setup_texts(view: RunView, start_data: RunStart) -> dict[str, str]:
    """Return the setup of a run by label, without its tools."""
    run = view.run
    message_count = ngettext("%(count)d message", "%(count)d messages", len(run.history))
    fallback_models = _("agent default")
    if "fallback_models" in run.overrides:
        fallback_models = ", ".join(run.overrides["fallback_models"].split()) or _("none")
    return {
        _("Question"): run.query,
        _("Agent"): run.agent_name,
        _("Model"): str(start_data.get("model", "")),
        _("Tool call format"): str(start_data.get("dialect", "")),
        _("Route"): str(start_data.get("route", "")),
        _("Max steps"): str(start_data.get("max_steps", "")),
        _("Instructions"): str(start_data.get("instructions", "")),
        _("Reasoning effort and temperature"): view.tuning_label or _("agent default"),
        _("Chat history"): message_count % {"count": len(run.history)},
        _("Fallback models"): fallback_models,
        _("Disabled guardrails"): ", ".join(run.overrides.get("guardrails_off", ()))
        or _("none"),
    }


def _tool_texts(starts: Sequence[RunStart]) -> list[ComparedTexts]:
    """Return the definitions of tools or, of those that only one run had, which had them."""
    definitions = [
        {tool["function"]["name"]: tool["function"] for tool in start.get("tools", ())}
        for start in starts
    ]
    compared: list[ComparedTexts] = []
    for name in sorted(set().union(*definitions)):
        tools = [run_tools.get(name) for run_tools in definitions]
        in_both = all(tools)
        if in_both:
            first, second = map(format_value, tools)
        else:
            first, second = (_("available") if tool else _("not available") for tool in tools)
        compared.append((_("Tool %(name)s") % {"name": name}, first, second, in_both))
    return compared
