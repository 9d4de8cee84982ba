"""Scores a finished run of an experiment, and compares it with its recording."""

from dataclasses import asdict

from agents.catalog import agent_factory
from agents.db import claims, database
from agents.engine.loop import PlainReply, first_divergence, made_call
from agents.engine.sentences import Sentence as _
from agents.models import Agent, Run
from agents.review.models import Review

from ..errors import NEEDS_APPROVAL
from ..models import ExperimentResult
from ..sources.recorded_runs import recorded_calls_of
from . import checks, judge, targets
from .checks import Check, CheckResult, RunFacts
from .comparison import Answer, compare_answers

State = ExperimentResult.State
Verdict = ExperimentResult.Verdict
UNORDERED_MODES = {Agent.Mode.PLAN, Agent.Mode.PANEL}


async def score(result: ExperimentResult) -> None:
    """Score the result's run and save it."""
    await database.run(_score_without_model, result)
    run = result.run
    experiment = result.experiment
    judged_checks: list[Check] = []
    expected = ""
    if result.example is not None:
        judged_checks = [
            check for check in result.example.checks if check["kind"] == checks.JUDGE
        ]
        expected = result.example.expected
    elif experiment.rubric:
        judged_checks = [{"kind": checks.JUDGE, "value": experiment.rubric}]
    if judged_checks and run is not None and _has_answer(run):
        agent = await database.run(targets.tested_agent, experiment.agent_id, experiment.spec)
        for check in judged_checks:
            check_result, reply = await judge.grade(
                check, run, agent, experiment.judge_model, expected
            )
            result.checks = [*result.checks, check_result.to_dict()]
            if reply is not None:
                await database.run(_charge, result, run, reply)
    await database.run(_finish, result)


def _score_without_model(result: ExperimentResult) -> None:
    run = result.run
    if run is None:
        result.state = State.ERROR
        result.problem = _("The run was deleted.")
        return
    divergence = None
    if not result.experiment.is_live:
        calls = [made_call(event) for event in agent_factory.own_events(run)]
        divergence = first_divergence(
            recorded_calls_of(result),
            [call for call in calls if call is not None],
            is_ordered=result.experiment.spec.get("mode") not in UNORDERED_MODES,
        )
    result.divergence = asdict(divergence) if divergence else None
    if _has_answer(run):
        check_results = _check(result, RunFacts.of(run))
        result.checks = [check_result.to_dict() for check_result in check_results]
    elif divergence is not None and divergence.kind == "not_recorded":
        result.state = State.DIVERGED
    elif run.detail == NEEDS_APPROVAL:
        result.state = State.APPROVAL
    elif run.status == Run.Status.STOPPED and not run.detail:
        result.state = State.CANCELLED
    else:
        result.state = State.ERROR
        result.problem = run.detail or run.stopped_reason


def _has_answer(run: Run) -> bool:
    return run.status == Run.Status.COMPLETED and bool(run.answer.strip())


def _check(result: ExperimentResult, facts: RunFacts) -> list[CheckResult]:
    """Evaluate what needs no model: the example's checks, or the similarity to the answer."""
    if result.example is not None:
        example_checks = checks.of_example(result.example)
        return [
            checks.evaluate(check, facts)
            for check in example_checks
            if check["kind"] != checks.JUDGE
        ]
    if result.origin is None:
        return []
    review = Review.objects.filter(run=result.origin.pk).exclude(correction="").first()
    if review is not None:
        return [checks.similarity(review.correction, facts.answer, checks.APPROVED)]
    if result.experiment.rubric or not result.origin.answer:
        return []  # the recorded answer may be what the rubric is about
    return [checks.similarity(result.origin.answer, facts.answer, checks.RECORDED)]


def _charge(result: ExperimentResult, run: Run, reply: PlainReply) -> None:
    """Count the judge's tokens and cost with the run, so that they count for the quota."""
    usage = reply.usage
    cost = usage.get("cost") or 0.0
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
        result.base_score = 0.0 if result.example is not None else None
        if _has_answer(origin):
            base_results = _check(result, RunFacts.of(origin))
            result.base_score = checks.mean(base_results) if base_results else None
        result.verdict = ""
        if result.state == State.DIVERGED:
            result.verdict = Verdict.STOPPED
        elif result.state not in {State.CANCELLED, State.APPROVAL}:
            is_similarity = any(check.kind == checks.RECORDED for check in check_results)
            base_score = result.base_score or 0.0 if _has_answer(origin) else None
            new_score = None if result.state == State.ERROR else result.score or 0.0
            result.verdict = compare_answers(
                Answer(score=base_score), Answer(score=new_score, is_judged=not is_similarity)
            )
    claims.release(result, **result.scored_values())
