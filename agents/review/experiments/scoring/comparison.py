"""Compares answers to the same question, and two experiments on the same runs."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from django.db.models import Q

from agents.engine.intervals import Interval, paired_mean
from agents.engine.loop import call_key
from agents.metering import tool_calls
from agents.models import AgentStep

from ..models import Experiment, ExperimentResult
from . import checks

State = ExperimentResult.State
Verdict = ExperimentResult.Verdict
SAME_SIMILARITY = 0.9
SCORE_MARGIN = 0.02
UNKNOWN = (State.DIVERGED, State.APPROVAL, State.CANCELLED)
ANSWERED = (State.PASSED, State.FAILED)
INTENDED = "intended"  # the call that failed was changed or left out


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """The calls of one tool in a backtest."""

    count: int = 0
    failures: int = 0


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Pairs of results on the same run, compared with each other.

    `changed` are answers that differ where nothing says which one is right, and `stopped` those
    that needed something the recording doesn't have. `intended` are those whose failing call
    was changed or left out. None of them counts for or against.
    """

    is_running: bool
    verdicts: Counter[str] = field(default_factory=Counter)
    own: int = 0  # runs that the change is about
    prevented: int = 0  # of them, those that got better
    score: Difference | None = None
    cost: Difference | None = None  # in dollars per run
    old_calls: ToolCalls = ToolCalls()
    new_calls: ToolCalls = ToolCalls()

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
    old_test: Experiment,
    new_test: Experiment,
    own: Collection[int] = (),
    failing_tool: str = "",
) -> Comparison:
    """Return how two backtests of the same runs differ; `own` are those of interest.

    With a failing tool, calls of it that the change is meant to change are recognized.
    """
    old_results = _results(old_test)
    new_results = _results(new_test)
    origins = old_results.keys() & new_results.keys()
    comparison = Comparison(
        is_running=old_test.is_running or new_test.is_running, own=len(origins & set(own))
    )
    changed_calls: set[int] = set()
    if failing_tool:
        comparison.old_calls = _count_calls(old_test, failing_tool)
        comparison.new_calls = _count_calls(new_test, failing_tool)
        changed_calls = _changed_calls(old_test, new_test, failing_tool)
    scores: list[float] = []
    costs: list[float] = []
    for origin in origins:
        old = old_results[origin]
        new = new_results[origin]
        verdict: str = Verdict.STOPPED
        if old.state not in UNKNOWN and new.state not in UNKNOWN:
            verdict = _compare_results(old, new)
            if Answer.of(new).is_judged:
                scores.append((new.score or 0.0) - (old.score or 0.0))
        if origin in changed_calls and verdict in {Verdict.STOPPED, Verdict.CHANGED}:
            verdict = INTENDED
        comparison.verdicts[verdict] += 1
        comparison.prevented += verdict == Verdict.BETTER and origin in own
        # A run that stopped early is cheap, which says nothing about the change.
        if (
            (old.state in ANSWERED and new.state in ANSWERED)
            and (old.run and old.run.cost is not None)
            and (new.run and new.run.cost is not None)
        ):
            costs.append(new.run.cost - old.run.cost)
    comparison.score = Difference.of(scores)
    comparison.cost = Difference.of(costs)
    return comparison


def _compare_results(old: ExperimentResult, new: ExperimentResult) -> Verdict:
    """Compare two answers: by what says how good they are, else with each other."""
    old_answer = Answer.of(old)
    new_answer = Answer.of(new)
    is_unjudged = new.state in ANSWERED and not new_answer.is_judged
    if is_unjudged and old.state in ANSWERED and old.run and new.run:
        # Their scores only say how similar each is to the recording.
        similarity = checks.similarity(old.run.answer, new.run.answer)
        new_answer = Answer(score=similarity.score, is_judged=False)
    return compare_answers(old_answer, new_answer)


def _count_calls(experiment: Experiment, tool: str) -> ToolCalls:
    runs = experiment.results.exclude(run=None).values("run")
    calls = tool_calls.finished_calls().filter(run__in=runs)
    rows = [row for row in tool_calls.count_by_tool(calls, "run") if row[0] == tool]
    return ToolCalls(
        count=sum(count for _tool, _run, count, _failures in rows),
        failures=sum(failures for _tool, _run, _count, failures in rows),
    )


def _changed_calls(old_test: Experiment, new_test: Experiment, tool: str) -> set[int]:
    """Return the recorded runs whose failing calls aren't repeated with the change."""
    failed: dict[int, set[str]] = {}
    for origin, step in _calls_of(old_test, tool):
        if step.status == AgentStep.Status.FAILED or step.failed_tool == tool:
            failed.setdefault(origin, set()).add(call_key(tool, step.action_input))
    repeated = {
        origin
        for origin, step in _calls_of(new_test, tool)
        if call_key(tool, step.action_input) in failed.get(origin, ())
    }
    return failed.keys() - repeated


def _calls_of(experiment: Experiment, tool: str) -> Iterator[tuple[int, AgentStep]]:
    results = experiment.results.values_list("run", "origin")
    origins = {run: origin for run, origin in results if run and origin}
    calls = AgentStep.objects.filter(run__in=origins, kind=AgentStep.Kind.TOOL)
    for step in calls.filter(Q(action=tool) | Q(failed_tool=tool)):
        yield origins[step.run_id], step


def _results(experiment: Experiment) -> dict[int, ExperimentResult]:
    ended = experiment.results.exclude(state__in=ExperimentResult.OPEN)
    rows = ended.exclude(origin=None).select_related("run")
    return {row.origin_id: row for row in rows if row.origin_id is not None}
