"""Compares two backtests of the same runs: without and with a suggestion."""

from dataclasses import dataclass

from agents.experiments import checks
from agents.experiments.models import Experiment, ExperimentResult
from agents.intervals import Interval, paired_mean

from .models import Suggestion

State = ExperimentResult.State
MARGIN, SAME_SIMILARITY = 0.02, 0.9
UNKNOWN = (State.DIVERGED, State.APPROVAL, State.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean difference of pairs; few pairs have no interval."""

    pairs: int
    mean: float
    interval: Interval | None

    @property
    def is_clear(self) -> bool:
        return self.interval is not None and not self.interval.has_zero


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Pairs of results on the same run.

    `changed` are answers that differ where nothing says which one is right, and `unknown` those
    that needed something the recording doesn't have. Neither counts for or against.
    """

    is_running: bool
    better: int = 0
    same: int = 0
    worse: int = 0
    changed: int = 0
    unknown: int = 0
    own: int = 0  # runs that the suggestion is about
    prevented: int = 0  # of them, those that got better
    score: Difference | None = None
    cost: Difference | None = None  # in dollars per run

    @property
    def pairs(self) -> int:
        return self.better + self.same + self.worse + self.changed + self.unknown

    @property
    def is_better(self) -> bool:
        return self.score is not None and self.score.is_clear and self.score.mean > 0

    @property
    def is_worse(self) -> bool:
        return self.score is not None and self.score.is_clear and self.score.mean < 0


def compare(suggestion: Suggestion) -> Comparison | None:
    """Return how the backtests differ; None if nothing was measured."""
    before = suggestion.before
    after = suggestion.after
    if before is None or after is None:
        return None
    own = set(suggestion.runs.values_list("pk", flat=True))
    results_before = _results(before)
    results_after = _results(after)
    origins = results_before.keys() & results_after.keys()
    comparison = Comparison(
        is_running=before.is_running or after.is_running, own=len(own & origins)
    )
    scores: list[float] = []
    costs: list[float] = []
    for origin in origins:
        outcome = _outcome(results_before[origin], results_after[origin])
        setattr(comparison, outcome, getattr(comparison, outcome) + 1)
        comparison.prevented += outcome == "better" and origin in own
        if outcome in {"better", "same", "worse"} and _is_judged(results_after[origin]):
            scores.append(_score(results_after[origin]) - _score(results_before[origin]))
        costs.extend(_cost_change(results_before[origin], results_after[origin]))
    comparison.score = _difference(scores)
    comparison.cost = _difference(costs)
    return comparison


def _difference(changes: list[float]) -> Difference | None:
    if not changes:
        return None
    mean, interval = paired_mean(changes)
    return Difference(pairs=len(changes), mean=mean, interval=interval)


def _results(experiment: Experiment) -> dict[int, ExperimentResult]:
    ended = experiment.results.exclude(state__in=ExperimentResult.OPEN)
    rows = ended.exclude(origin=None).select_related("run")
    return {row.origin_id: row for row in rows if row.origin_id is not None}


def _outcome(before: ExperimentResult, after: ExperimentResult) -> str:
    if before.state in UNKNOWN or after.state in UNKNOWN:
        return "unknown"
    if State.ERROR in (before.state, after.state):
        return _by_errors(before, after)
    if not _is_judged(after):
        return "same" if _score(after) >= SAME_SIMILARITY else "changed"
    change = _score(after) - _score(before)
    if abs(change) <= MARGIN:
        return "same"
    return "better" if change > 0 else "worse"


def _by_errors(before: ExperimentResult, after: ExperimentResult) -> str:
    if before.state == after.state:
        return "same"
    return "worse" if after.state == State.ERROR else "better"


def _is_judged(result: ExperimentResult) -> bool:
    """Whether something says how good the answer is: a correction, or the judge."""
    return any(check["kind"] != checks.RECORDED for check in result.checks)


def _score(result: ExperimentResult) -> float:
    return result.score or 0.0


def _cost_change(before: ExperimentResult, after: ExperimentResult) -> list[float]:
    costs = [result.run.cost if result.run else None for result in (before, after)]
    return [costs[1] - costs[0]] if costs[0] is not None and costs[1] is not None else []
