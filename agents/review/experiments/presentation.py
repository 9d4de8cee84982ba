"""Experiments as their page displays them, masked for reviewers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import masking
from agents.db.sentences import translate
from agents.models import Run
from agents.review.annotations.similarity import tokenize
from agents.review.models import Example, Review
from agents.web.presentation import trace_url
from agents.web.presentation.formats.text_diff import TextDiff, TextDiffer

from . import reading
from .models import VIEW_PERMISSION, Experiment, ExperimentResult
from .scoring import checks
from .sources.sources import left_out_sentence

State = ExperimentResult.State
Verdict = ExperimentResult.Verdict
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
    Verdict.BETTER: gettext_lazy("Passes more checks, or is closer to the corrected answer."),
    Verdict.SAME: gettext_lazy(
        "Same score, or at least 90 percent similar to the recorded answer."
    ),
    Verdict.CHANGED: gettext_lazy(
        "A different answer, with no check or correction to compare it with."
    ),
    Verdict.WORSE: gettext_lazy("Passes fewer checks, or no longer has an answer."),
    Verdict.STOPPED: gettext_lazy(
        "A tool call wasn't in the recording, so the run stopped there."
    ),
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
    answer_words: int
    seconds: float | None
    cost: float | None

    @classmethod
    def of(cls, run: Run) -> "Length":
        return cls(
            steps=run.step_count,
            tokens=run.total_tokens,
            answer_words=len(tokenize(run.answer)),
            seconds=run.active,
            cost=run.cost,
        )


class ResultView:
    """One result; `compared` is the same question in the experiment it is compared with."""

    def __init__(
        self,
        result: ExperimentResult,
        *,
        is_masked: bool,
        differ: TextDiffer | None,
        correction: str = "",
        compared: ExperimentResult | None = None,
    ) -> None:
        self.result = result
        self.is_masked = is_masked
        self.differ = differ
        self.correction = correction
        self.compared = compared

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
                label=checks.label(check["kind"]),
                value=self._text(check["value"]) if check["kind"] in checks.KINDS else "",
                passed=check["passed"],
                detail=self._text(translate(check["detail"])),
                percent=round(100 * check["score"]),
            )
            for check in self.result.checks
        ]

    @property
    def divergence(self) -> str:
        """The first divergence as a sentence."""
        divergence = self.result.divergence
        if not divergence:
            return ""
        match divergence["kind"], bool(divergence["recorded"]):
            case "not_recorded", True:
                sentence = _("Called %(made)s instead of %(recorded)s")
            case "not_recorded", False:
                sentence = _("Called %(made)s after the last call of the recorded run")
            case "order", _has:
                sentence = _("Called %(made)s before %(recorded)s")
            case "repeated", _has:
                sentence = _("Called %(made)s once more")
            case _kind:
                sentence = _("Answered without calling %(recorded)s")
        return sentence % {
            "made": self._text(divergence["made"]),
            "recorded": self._text(divergence["recorded"]),
        }

    @property
    def reasons(self) -> list[str]:
        """Return why it didn't pass: failed checks, a divergence, a problem."""
        if self.result.state == State.PASSED:
            return []
        failed = [
            f"{check.label}: {check.value}" + (f" ({check.detail})" if check.detail else "")
            for check in self.checks
            if not check.passed
        ]
        return [*failed, *filter(None, [self.divergence, self.problem])]

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
        result = self.result
        if result.run is None or not result.run.answer or self.differ is None:
            return None
        if result.example is not None:
            expected = result.example.expected
        else:
            expected = self.correction or (result.origin.answer if result.origin else "")
        return self.differ.compare(self._text(expected), self._text(result.run.answer))

    @property
    def change(self) -> int | None:
        """How much the score changed since the other experiment, in points."""
        if self.compared is None or self.compared.score is None or self.result.score is None:
            return None
        return round(100 * (self.result.score - self.compared.score))


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
        self.experiment = experiment
        self.viewer = viewer
        self.session = session
        self.against = against

    @cached_property
    def rows(self) -> list[ResultView]:
        related = ("run", "origin", "example")
        results = list(self._visible_results().select_related(*related))
        compared_results = self.against.results.exclude(example=None) if self.against else ()
        compared = {row.example_id: row for row in compared_results}
        origins = [result.origin_id for result in results if result.origin_id]
        corrected = Review.objects.filter(run__in=origins).exclude(correction="")
        corrections = dict(corrected.values_list("run", "correction"))
        differ = None if self.experiment.is_running else TextDiffer()
        session = dict(self.session)
        return [
            ResultView(
                result,
                is_masked=result.origin is not None
                and masking.is_masked_for(result.origin, self.viewer, session),
                differ=differ if index < MAX_DIFFED else None,
                correction=corrections.get(result.origin_id or 0, ""),
                compared=compared.get(result.example_id or 0),
            )
            for index, result in enumerate(results)
        ]

    def _visible_results(self) -> QuerySet[ExperimentResult]:
        """Return all results, or for a reviewer those whose recording and example they see."""
        results = self.experiment.results.all()
        is_own = self.experiment.started_by_id == self.viewer.pk
        if is_own or self.viewer.has_perm(VIEW_PERMISSION):
            return results
        origins = Run.objects.in_scope(self.viewer).filter(pk=OuterRef("origin"))
        examples = reading.examples_in_scope(Example.objects.all(), self.viewer)
        return results.filter(
            Q(origin=None) | Exists(origins),
            Q(example=None) | Exists(examples.filter(pk=OuterRef("example"))),
        )

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
            "answer_words": _("Answer length"),
        }
        ratios = []
        for name, label in labels.items():
            values = [(getattr(base, name), getattr(tested, name)) for base, tested in pairs]
            values = [pair for pair in values if None not in pair]
            base_total = sum(base for base, _tested in values)
            if not base_total:
                continue
            change = round(100 * (sum(tested for _base, tested in values) / base_total - 1))
            percent = f"{change:+d}%" if change else "±0%"
            ratios.append(
                Ratio(label=label, value=percent, count=len(values), is_more=change > 0)
            )
        return ratios

    @property
    def totals(self) -> Length:
        lengths = [row.length for row in self.rows if row.length]
        costs = [length.cost for length in lengths if length.cost is not None]
        return Length(
            steps=sum(length.steps for length in lengths),
            tokens=sum(length.tokens for length in lengths),
            answer_words=sum(length.answer_words for length in lengths),
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
