"""Scores a finished run of an experiment, and compares it with its recording."""

from dataclasses import asdict
from typing import Any

from agents.catalog import agent_factory, agent_spec
from agents.db import database
from agents.engine.loop import PlainReply, first_divergence, made_call
from agents.models import Agent, Run
from agents.review.models import Review

from . import checks, judge
from .checks import Check, CheckResult, RunFacts
from .errors import NEEDS_APPROVAL
from .models import Experiment, ExperimentResult
from .recorded_runs import recorded_calls_of

State, Verdict = ExperimentResult.State, ExperimentResult.Verdict
SAME_SIMILARITY = 0.9
SCORE_MARGIN = 0.02
UNORDERED_MODES = {Agent.Mode.PLAN, Agent.Mode.PANEL}


async def score(result: ExperimentResult) -> None:
    """Score the result's run and save it."""
    await database.run(_score_without_model, result)
    run = result.run
    judged_checks = _judged_checks(result)
    if judged_checks and run is not None and _has_answer(run):
        await _grade(result, judged_checks, run)
    await database.run(_finish, result)


def _score_without_model(result: ExperimentResult) -> None:
    run = result.run
    if run is None:
        result.state, result.problem = State.ERROR, "The run was deleted."
        return
    divergence = None if result.experiment.is_live else _divergence(result, run)
    result.divergence = divergence and asdict(divergence)
    if _has_answer(run):
        result.checks = [one.to_dict() for one in _check(result, RunFacts.of(run))]
    elif divergence is not None and divergence.kind == "not_recorded":
        result.state = State.DIVERGED
    elif run.detail == NEEDS_APPROVAL:
        result.state = State.APPROVAL
    elif run.status == Run.Status.STOPPED and not run.detail:
        result.state = State.CANCELLED
    else:
        result.state, result.problem = State.ERROR, run.detail or run.stopped_reason


def _has_answer(run: Run) -> bool:
    return run.status == Run.Status.COMPLETED and bool(run.answer.strip())


def _divergence(result: ExperimentResult, run: Run) -> Any:
    calls = [made_call(event) for event in agent_factory.own_events(run)]
    is_ordered = result.experiment.spec.get("mode") not in UNORDERED_MODES
    made = [call for call in calls if call is not None]
    return first_divergence(recorded_calls_of(result), made, is_ordered=is_ordered)


def _check(result: ExperimentResult, facts: RunFacts) -> list[CheckResult]:
    """Evaluate what needs no model: the example's checks, or the similarity to the answer."""
    if result.example is not None:
        example_checks = checks.of_example(result.example)
        return [
            checks.evaluate(check, facts)
            for check in example_checks
            if check["kind"] != checks.JUDGE
        ]
    expected, kind = _reference(result.origin)
    if result.experiment.rubric and kind == checks.RECORDED:
        return []  # the recorded answer may be what the rubric is about
    return [checks.similarity(expected, facts.answer, kind)] if expected else []


def _reference(origin: Run | None) -> tuple[str, str]:
    """Return the answer to compare with: a reviewer's correction or the recorded one."""
    if origin is None:
        return "", checks.RECORDED
    review = Review.objects.filter(run=origin.pk).exclude(correction="").first()
    if review is not None:
        return review.correction, checks.APPROVED
    return origin.answer, checks.RECORDED


def _judged_checks(result: ExperimentResult) -> list[Check]:
    """Return the checks that need a model: of the example, or the experiment's rubric."""
    if result.example is not None:
        return [check for check in result.example.checks if check["kind"] == checks.JUDGE]
    rubric = result.experiment.rubric
    return [{"kind": checks.JUDGE, "value": rubric}] if rubric else []


async def _grade(result: ExperimentResult, judged_checks: list[Check], run: Run) -> None:
    """Let the judge model evaluate these checks."""
    experiment = result.experiment
    agent = await database.run(tested_agent, experiment)
    for check in judged_checks:
        expected = result.example.expected if result.example else ""
        check_result, reply = await judge.grade(
            check, run, agent, experiment.judge_model, expected
        )
        result.checks = [*result.checks, check_result.to_dict()]
        if reply is not None:
            await database.run(_charge, result, run, reply)


def tested_agent(experiment: Experiment) -> Agent:
    agent = agent_spec.resolve(experiment.spec).agent
    agent.pk = experiment.agent_id
    return agent


def _charge(result: ExperimentResult, run: Run, reply: PlainReply) -> None:
    """Count the judge's tokens and cost with the run, so that they count for the quota."""
    usage, cost = reply.usage, reply.usage.get("cost") or 0.0
    result.judge_cost = (result.judge_cost or 0.0) + cost
    run.prompt_tokens += usage["prompt_tokens"]
    run.completion_tokens += usage["completion_tokens"]
    run.cost = (run.cost or 0.0) + cost if cost else run.cost
    run.save(update_fields=["prompt_tokens", "completion_tokens", "cost"])


def _finish(result: ExperimentResult) -> None:
    """Save the result, its score and how it compares with the recording."""
    check_results = [CheckResult(**check) for check in result.checks]
    if result.state == State.SCORING:
        has_passed = bool(check_results) and all(check.passed for check in check_results)
        result.state = State.PASSED if has_passed or not check_results else State.FAILED
        result.score = checks.mean(check_results) if check_results else None
    elif result.example is not None and result.state != State.CANCELLED:
        result.score = 0.0
    origin = result.origin
    if origin is not None:
        result.base_score = _base_score(result, origin)
        result.verdict = _verdict(result, origin, check_results)
    result.claimed_at = None
    result.save()


def _base_score(result: ExperimentResult, origin: Run) -> float | None:
    if not _has_answer(origin):
        return 0.0 if result.example is not None else None
    check_results = _check(result, RunFacts.of(origin))
    return checks.mean(check_results) if check_results else None


def _verdict(result: ExperimentResult, origin: Run, check_results: list[CheckResult]) -> str:
    """Return whether the answer got better; without a reference only that it changed."""
    if result.state in {State.CANCELLED, State.APPROVAL}:
        return ""
    if result.state == State.DIVERGED:
        return Verdict.STOPPED
    if result.state == State.ERROR:
        return Verdict.WORSE if _has_answer(origin) else Verdict.SAME
    if not _has_answer(origin):
        return Verdict.BETTER
    if any(check.kind == checks.RECORDED for check in check_results):
        is_same = (result.score or 0.0) >= SAME_SIMILARITY
        return Verdict.SAME if is_same else Verdict.CHANGED
    change = (result.score or 0.0) - (result.base_score or 0.0)
    if abs(change) <= SCORE_MARGIN:
        return Verdict.SAME
    return Verdict.BETTER if change > 0 else Verdict.WORSE
