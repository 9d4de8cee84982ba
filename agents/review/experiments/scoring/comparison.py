"""Compares answers to the same question, and two experiments on the same runs."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from agents.engine.intervals import Interval, paired_mean

from ..models import Experiment, ExperimentResult
from . import checks

State = ExperimentResult.State
Verdict = ExperimentResult.Verdict
SAME_SIMILARITY = 0.9
SCORE_MARGIN = 0.02
UNKNOWN = (State.DIVERGED, State.APPROVAL, State.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer with its score; None if there is no answer.

    It is judged if something says how good it is: checks, a correction or the judge. Otherwise
    the score is how similar it is to the recorded answer.
    """

    score: float | None
    is_judged: bool = True

    @classmethod
    def of(cls, result: ExperimentResult) -> "Answer":
        if result.state == State.ERROR:
            return cls(score=None, is_judged=False)
        kinds = {check["kind"] for check in result.checks}
        return cls(score=result.score or 0.0, is_judged=bool(kinds - {checks.RECORDED}))


def compare_answers(old: Answer, new: Answer) -> ExperimentResult.Verdict:
    """Return whether an answer is better; if nothing says so, only that it changed."""
    if new.score is None:
        return Verdict.SAME if old.score is None else Verdict.WORSE
    if old.score is None:
        return Verdict.BETTER
    if not new.is_judged:
        return Verdict.SAME if new.score >= SAME_SIMILARITY else Verdict.CHANGED
    change = new.score - old.score
    if abs(change) <= SCORE_MARGIN:
        return Verdict.SAME
    return Verdict.BETTER if change > 0 else Verdict.WORSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean difference of pairs; few pairs have no interval."""

    pairs: int
    mean: float
    interval: Interval | None

    @classmethod
    def of(cls, changes: list[float]) -> "Difference | None":
        if not changes:
            return None
        mean, interval = paired_mean(changes)
        return cls(pairs=len(changes), mean=mean, interval=interval)

    @property
    def is_clear(self) -> bool:
        return self.interval is not None and not self.interval.has_zero


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Pairs of results on the same run.

    `changed` are answers that differ where nothing says which one is right, and `stopped` those
    that needed something the recording doesn't have. Neither counts for or against.
    """

    is_running: bool
    verdicts: Counter[str] = field(default_factory=Counter)
    own: int = 0  # runs that the change is about
    prevented: int = 0  # of them, those that got better
    score: Difference | None = None
    cost: Difference | None = None  # in dollars per run

    @property
    def pairs(self) -> int:
        return self.verdicts.total()

    @property
    def is_better(self) -> bool:
        return self.score is not None and self.score.is_clear and self.score.mean > 0

    @property
    def is_worse(self) -> bool:
        return self.score is not None and self.score.is_clear and self.score.mean < 0


def compare(
    old_test: Experiment, new_test: Experiment, own: Collection[int] = ()
) -> Comparison:
    """Return how two backtests of the same runs differ; `own` are those of interest."""
    old_results = _results(old_test)
    new_results = _results(new_test)
    origins = old_results.keys() & new_results.keys()
    comparison = Comparison(
        is_running=old_test.is_running or new_test.is_running, own=len(origins & set(own))
    )
    scores: list[float] = []
    costs: list[float] = []
    for origin in origins:
        old = old_results[origin]
        new = new_results[origin]
        verdict = Verdict.STOPPED
        if old.state not in UNKNOWN and new.state not in UNKNOWN:
            verdict = compare_answers(Answer.of(old), Answer.of(new))
            if Answer.of(new).is_judged:
                scores.append((new.score or 0.0) - (old.score or 0.0))
        comparison.verdicts[verdict] += 1
        comparison.prevented += verdict == Verdict.BETTER and origin in own
        if old.run and new.run and old.run.cost is not None and new.run.cost is not None:
            costs.append(new.run.cost - old.run.cost)
    comparison.score = Difference.of(scores)
    comparison.cost = Difference.of(costs)
    return comparison


def _results(experiment: Experiment) -> dict[int, ExperimentResult]:
    ended = experiment.results.exclude(state__in=ExperimentResult.OPEN)
    rows = ended.exclude(origin=None).select_related("run")
    return {row.origin_id: row for row in rows if row.origin_id is not None}
