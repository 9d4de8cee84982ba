"""Suggestions in words: what was found, what would change, what was measured."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.text import shorten
from agents.insight.problems.presentation import example_questions
from agents.metering import tool_calls
from agents.models import Run
from agents.review.experiments.scoring import comparison
from agents.review.experiments.scoring.comparison import INTENDED, Comparison

from . import evidence
from .models import Suggestion

Kind = Suggestion.Kind
Status = Suggestion.Status
MAX_EXAMPLES = 10
TONES = {Status.OPEN: "amber", Status.APPLIED: "green", Status.DISMISSED: ""}


def title(suggestion: Suggestion) -> str:
    """Return the finding in one sentence."""
    params: dict[str, Any] = {**suggestion.figures, "subject": suggestion.subject}
    match suggestion.kind:
        case Kind.TOOL_FAILS:
            params["percent"] = f"{100 * params['failures'] / params['calls']:.0f}%"
            return _("%(subject)s fails in %(percent)s of its calls") % params
        case Kind.TOOL_UNUSED:
            sentence = ngettext(
                "%(subject)s wasn't used in %(runs)d run",
                "%(subject)s wasn't used in %(runs)d runs",
                params["runs"],
            )
            return sentence % params
        case _:
            params["text"] = shorten(suggestion.text, 90)
            return _("Feedback repeats: “%(text)s”") % params


def reason(suggestion: Suggestion) -> str:
    """Return the evidence in words."""
    figures = suggestion.figures
    match suggestion.kind:
        case Kind.TOOL_FAILS if figures.get("message"):
            sentence = _(
                "%(failures)d of %(calls)d calls failed in the last 30 days. Most frequent "
                "error (%(same)d of %(read)d checked failures): %(message)s"
            )
            return str(sentence % figures)
        case Kind.TOOL_FAILS:
            sentence = _("%(failures)d of %(calls)d calls failed in the last 30 days.")
            return str(sentence % figures)
        case Kind.TOOL_UNUSED:
            return _(
                "The tool was available in %(runs)d runs in the last 30 days but was never "
                "called. Its definition is sent with every request, costs tokens and "
                "distracts the model."
            ) % {"runs": figures["runs"]}
        case _:
            return _(
                "Feedback on %(comments)d of %(wrong)d answers that were rated as bad in the "
                "last 30 days says nearly the same."
            ) % {"comments": figures["comments"], "wrong": figures["wrong"]}


def change(suggestion: Suggestion) -> str:
    """Return what applying it does."""
    if suggestion.kind == Kind.TOOL_UNUSED:
        sentence = _("Removes %(tool)s from the agent's tools.")
        return sentence % {"tool": suggestion.subject}
    return _("Adds this line at the end of the agent's instructions:")


def measured(suggestion: Suggestion, result: Comparison) -> str:
    """Return what the backtests say, also that they say nothing."""
    params = {"own": result.own, "prevented": result.prevented, "pairs": result.pairs}
    if not result.pairs:
        return _("None of these runs could be run again.")
    if suggestion.kind == Kind.INSTRUCTION and result.prevented:
        claim = _("It would have improved %(prevented)d of %(own)d wrong answers.")
        return f"{claim % params} {_verdict(result)}"
    if suggestion.kind == Kind.TOOL_FAILS:
        return f"{_measured_calls(suggestion, result)} {_verdict(result)}"
    return _verdict(result)


def _measured_calls(suggestion: Suggestion, result: Comparison) -> str:
    """Return how often the tool failed without and with the change."""
    if suggestion.after is None or not suggestion.after.is_live:
        sentence = ngettext(
            "In %(count)d run, the call that failed was changed or left out.",
            "In %(count)d runs, the call that failed was changed or left out.",
            result.verdicts[INTENDED],
        )
        return sentence % {"count": result.verdicts[INTENDED]}
    return _(
        "%(tool)s was called live: %(old_failures)d of %(old)d calls failed without the "
        "change, %(new_failures)d of %(new)d with it."
    ) % {
        "tool": suggestion.subject,
        "old_failures": result.old_calls.failures,
        "old": result.old_calls.count,
        "new_failures": result.new_calls.failures,
        "new": result.new_calls.count,
    }


def _verdict(result: Comparison) -> str:
    if result.is_better:
        return _("Scores are better with it.")
    if result.is_worse:
        return _("Scores are worse with it.")
    if result.score is None:
        return _("No scores show which answers are better. Compare the ones that changed.")
    return _("No measurable difference.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    run: Run
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How a tool has done since the suggestion was applied, and before."""

    calls: int
    failures: int
    calls_before: int
    failures_before: int


class SuggestionView:
    """What a reader sees of a suggestion: runs only within their rights, masked."""

    def __init__(self, suggestion: Suggestion, reader: User, session: Any) -> None:
        self.suggestion = suggestion
        self.reader = reader
        self.session = session

    @property
    def title(self) -> str:
        return title(self.suggestion)

    @property
    def reason(self) -> str:
        return reason(self.suggestion)

    @property
    def change(self) -> str:
        return change(self.suggestion)

    @property
    def tone(self) -> str:
        return TONES[Status(self.suggestion.status)]

    @property
    def next_version(self) -> int:
        return (self.suggestion.agent.version or 0) + 1

    @property
    def can_take_back(self) -> bool:
        agent = self.suggestion.agent
        return self.suggestion.is_applied and agent.version == self.suggestion.applied_version

    @cached_property
    def comparison(self) -> Comparison | None:
        """How the backtests without and with it differ; None if nothing was measured."""
        published = self.suggestion.before
        changed = self.suggestion.after
        if published is None or changed is None:
            return None
        own = self.suggestion.runs.values_list("pk", flat=True)
        is_failing = self.suggestion.kind == Kind.TOOL_FAILS
        failing_tool = self.suggestion.subject if is_failing else ""
        return comparison.compare(published, changed, set(own), failing_tool)

    @property
    def measured(self) -> str:
        result = self.comparison
        return measured(self.suggestion, result) if result else ""

    @cached_property
    def examples(self) -> list[ExampleRun]:
        visible = Run.objects.for_user(self.reader).listed()
        rows = self.suggestion.runs.filter(pk__in=visible.values("pk")).order_by("-pk")
        runs = list(rows[:MAX_EXAMPLES])
        questions = example_questions(runs, self.reader, self.session)
        return [
            ExampleRun(run=run, question=question)
            for run, question in zip(runs, questions, strict=True)
        ]

    @cached_property
    def effect(self) -> Effect | None:
        """How the tool's calls went in versions with the suggestion."""
        suggestion = self.suggestion
        if not suggestion.is_applied or suggestion.kind != Kind.TOOL_FAILS:
            return None
        steps = evidence.tool_steps(0).filter(
            run__agent=suggestion.agent,
            run__agent_version__gte=suggestion.applied_version,
        )
        by_tool = {
            tool: (calls, failures)
            for tool, _agent, calls, failures in tool_calls.count_by_tool(steps, "run__agent")
        }
        calls, failures = by_tool.get(suggestion.subject, (0, 0))
        return Effect(
            calls=calls,
            failures=failures,
            calls_before=suggestion.figure("calls"),
            failures_before=suggestion.figure("failures"),
        )
