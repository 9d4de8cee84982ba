"""Experiments as their page displays them, masked for reviewers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import masking
from agents.models import Run
from agents.review.models import Review
from agents.review.similarity import tokenize
from agents.runs.engine_messages import translate
from agents.web.presentation import trace_url
from agents.web.presentation.text_diff import TextDiff, TextDiffer

from . import checks
from .models import Experiment, ExperimentResult
from .sources import left_out_sentence

State, Verdict = ExperimentResult.State, ExperimentResult.Verdict
TONES = {
    State.PASSED: "green",
    State.FAILED: "red",
    State.DIVERGED: "amber",
    State.APPROVAL: "violet",
    State.ERROR: "red",
    State.RUNNING: "blue",
    State.SCORING: "blue",
}
VERDICT_TONES = {
    Verdict.BETTER: "green",
    Verdict.WORSE: "red",
    Verdict.CHANGED: "amber",
    Verdict.STOPPED: "amber",
}
VERDICT_HELP = {
    Verdict.BETTER: gettext_lazy("Meets more checks, or is closer to the corrected answer."),
    Verdict.SAME: gettext_lazy(
        "Same score, or at least 90 percent similar to the recorded answer."
    ),
    Verdict.CHANGED: gettext_lazy("Another answer, and nothing says which one is right."),
    Verdict.WORSE: gettext_lazy("Meets fewer checks, or has no answer any more."),
    Verdict.STOPPED: gettext_lazy("Made a call that wasn't recorded, so it stopped there."),
}
MAX_DIFFED = 100
Session = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckView:
    label: str
    value: str
    passed: bool
    detail: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """What a run used: steps, tokens, words, seconds and dollars."""

    steps: int
    tokens: int
    words: int
    seconds: float | None
    cost: float | None

    @classmethod
    def of(cls, run: Run) -> "Length":
        return cls(
            steps=run.step_count,
            tokens=run.total_tokens,
            words=len(tokenize(run.answer)),
            seconds=run.active,
            cost=run.cost,
        )


class ResultView:
    """One result; `other` is the same question in the experiment it is compared with."""

    def __init__(
        self,
        result: ExperimentResult,
        *,
        is_masked: bool,
        differ: TextDiffer | None,
        correction: str = "",
        other: ExperimentResult | None = None,
    ) -> None:
        self.result, self.is_masked, self.differ = result, is_masked, differ
        self.correction, self.other = correction, other

    def _text(self, text: str) -> str:
        return masking.mask_text(text) if self.is_masked else text

    @property
    def name(self) -> str:
        return self._text(self.result.name)

    @property
    def state(self) -> str:
        return str(self.result.get_state_display())

    @property
    def tone(self) -> str:
        return TONES.get(State(self.result.state), "")

    @property
    def verdict_tone(self) -> str:
        return VERDICT_TONES.get(self.result.verdict, "")  # type: ignore[call-overload]

    @property
    def percent(self) -> int | None:
        return None if self.result.score is None else round(100 * self.result.score)

    @property
    def problem(self) -> str:
        return self._text(translate(self.result.problem))

    @property
    def checks(self) -> list[CheckView]:
        return [
            CheckView(
                label=checks.label(one["kind"]),
                value=self._text(one["value"]) if one["kind"] in checks.KINDS else "",
                passed=one["passed"],
                detail=self._text(translate(one["detail"])),
                percent=round(100 * one["score"]),
            )
            for one in self.result.checks
        ]

    @property
    def divergence(self) -> str:
        """The first divergence as a sentence."""
        divergence = self.result.divergence
        if not divergence:
            return ""
        params = {
            "made": self._text(divergence["made"]),
            "recorded": self._text(divergence["recorded"]),
        }
        return _divergence_sentence(divergence) % params

    @property
    def trace(self) -> str:
        return trace_url(self.result.run_id) if self.result.run_id else ""

    @property
    def origin_trace(self) -> str:
        return trace_url(self.result.origin_id) if self.result.origin_id else ""

    @property
    def comparison(self) -> str:
        """The page that compares the recorded run with this one, side by side."""
        if not (self.result.origin_id and self.result.run_id):
            return ""
        return reverse("trace:compare", args=[self.result.origin_id, self.result.run_id])

    @property
    def length(self) -> Length | None:
        return Length.of(self.result.run) if self.result.run else None

    @property
    def base_length(self) -> Length | None:
        return Length.of(self.result.origin) if self.result.origin else None

    @cached_property
    def difference(self) -> TextDiff | None:
        """The expected or recorded answer and the new one."""
        run, before = self.result.run, self._expected()
        if run is None or not run.answer or self.differ is None:
            return None
        return self.differ.compare(self._text(before), self._text(run.answer))

    def _expected(self) -> str:
        result = self.result
        if result.example is not None:
            return result.example.expected
        return self.correction or (result.origin.answer if result.origin else "")

    @property
    def change(self) -> int | None:
        """How much the score changed since the other experiment, in points."""
        if self.other is None or self.other.score is None or self.result.score is None:
            return None
        return round(100 * (self.result.score - self.other.score))

    @property
    def other_percent(self) -> int | None:
        score = self.other.score if self.other else None
        return None if score is None else round(100 * score)


def _divergence_sentence(divergence: Mapping[str, Any]) -> str:
    match divergence["kind"], bool(divergence["recorded"]):
        case "not_recorded", True:
            return _("Asked %(made)s instead of %(recorded)s")
        case "not_recorded", False:
            return _("Asked %(made)s, where the recorded run made no more calls")
        case "order", _has:
            return _("Asked %(made)s before %(recorded)s")
        case "repeated", _has:
            return _("Asked %(made)s once more")
    return _("Answered without asking %(recorded)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """What the tested version used compared with the recording, over `count` runs."""

    label: str
    value: str
    count: int
    is_more: bool


class ExperimentView:
    """An experiment with its results."""

    def __init__(
        self,
        experiment: Experiment,
        viewer: User,
        session: Session,
        against: Experiment | None = None,
    ) -> None:
        self.experiment, self.viewer, self.session = experiment, viewer, session
        self.against = against

    @cached_property
    def rows(self) -> list[ResultView]:
        related = ("run", "origin", "example")
        results = list(self.experiment.results.select_related(*related))
        others = self._others()
        differ = None if self.experiment.is_running else TextDiffer()
        corrections = self._corrections(results)
        return [
            ResultView(
                result,
                is_masked=self._is_masked(result),
                differ=differ if at < MAX_DIFFED else None,
                correction=corrections.get(result.origin_id or 0, ""),
                other=others.get(result.example_id or 0),
            )
            for at, result in enumerate(results)
        ]

    def _corrections(self, results: Sequence[ExperimentResult]) -> dict[int, str]:
        origins = [result.origin_id for result in results if result.origin_id]
        found = Review.objects.filter(run__in=origins).exclude(correction="")
        return dict(found.values_list("run", "correction"))

    def _others(self) -> dict[int, ExperimentResult]:
        if self.against is None:
            return {}
        rows = self.against.results.exclude(example=None)
        return {row.example_id: row for row in rows if row.example_id}

    def _is_masked(self, result: ExperimentResult) -> bool:
        origin = result.origin
        if origin is None:
            return False
        session = dict(self.session)
        return masking.is_masked_for(origin, self.viewer, session)

    @property
    def finished(self) -> int:
        return sum(not row.result.is_open for row in self.rows)

    @property
    def percent_done(self) -> int:
        return round(100 * self.finished / max(1, len(self.rows)))

    @property
    def percent(self) -> int | None:
        score = self.experiment.score
        return None if score is None else round(100 * score)

    @property
    def scored(self) -> int:
        return sum(row.result.score is not None for row in self.rows)

    @property
    def states(self) -> list[tuple[str, str, int]]:
        """How many results are in each final state: label, tone, count."""
        counts = Counter(row.result.state for row in self.rows if not row.result.is_open)
        return [
            (str(State(state).label), TONES.get(State(state), ""), count)
            for state, count in counts.most_common()
        ]

    @property
    def verdicts(self) -> list[tuple[str, str, int, str]]:
        """How many results got better, stayed and so on: label, tone, count, meaning."""
        counts = Counter(row.result.verdict for row in self.rows if row.result.verdict)
        return [
            (
                str(verdict.label),
                VERDICT_TONES.get(verdict, ""),
                counts[verdict],
                str(VERDICT_HELP[verdict]),
            )
            for verdict in Verdict
            if counts[verdict]
        ]

    @property
    def ratios(self) -> list[Ratio]:
        """Cost, steps, tokens and words compared with the recording, of runs with both."""
        pairs = [
            (row.base_length, row.length)
            for row in self.rows
            if row.base_length
            and row.length
            and row.result.state in {State.PASSED, State.FAILED}
        ]
        labels = {
            "cost": _("Cost"),
            "tokens": _("Tokens"),
            "steps": _("Steps"),
            "words": _("Answer length"),
        }
        ratios = [_ratio(label, name, pairs) for name, label in labels.items()]
        return [ratio for ratio in ratios if ratio is not None]

    @property
    def totals(self) -> Length:
        lengths = [row.length for row in self.rows if row.length]
        costs = [length.cost for length in lengths if length.cost is not None]
        return Length(
            steps=sum(length.steps for length in lengths),
            tokens=sum(length.tokens for length in lengths),
            words=sum(length.words for length in lengths),
            seconds=sum(length.seconds or 0.0 for length in lengths),
            cost=sum(costs) if costs else None,
        )

    @property
    def left_out(self) -> list[str]:
        return [left_out_sentence(*pair) for pair in self.experiment.left_out]

    @property
    def better(self) -> int:
        return sum((row.change or 0) > 0 for row in self.rows)

    @property
    def worse(self) -> int:
        return sum((row.change or 0) < 0 for row in self.rows)

    @property
    def problem(self) -> str:
        return translate(self.experiment.problem)


def _ratio(label: str, name: str, pairs: Sequence[tuple[Length, Length]]) -> Ratio | None:
    values = [(getattr(a, name), getattr(b, name)) for a, b in pairs]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    before = sum(a for a, _after in known)
    if not before:
        return None
    share = sum(b for _before, b in known) / before
    change = round(100 * (share - 1))
    value = f"{change:+d}%" if change else "±0%"
    return Ratio(label=label, value=value, count=len(known), is_more=change > 0)
