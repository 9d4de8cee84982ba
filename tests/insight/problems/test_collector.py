"""Finished runs become problems, each counted once."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.insight.problems import collector
from agents.insight.problems.models import (
    Problem,
    ProblemChange,
    ProblemHour,
    ProblemRun,
    ProblemTag,
)
from agents.models import Approval, GuardrailHit, GuardrailPattern, PeriodicJob, Run, RunEvent
from agents.review.models import Rating

pytestmark = pytest.mark.django_db


def collect():
    """Count everything: what ended since the installation, and what ended before."""
    collector.collect()
    while collector.collect_history():
        pass
    return list(Problem.objects.order_by("pk"))


@pytest.fixture(autouse=True)
def _installed():
    """The product was installed an hour ago, so that runs are new."""
    then = timezone.now() - timedelta(hours=1)
    report = collector.Progress.start(then).changed(history_before=0, history_left=0)
    PeriodicJob.objects.create(name=collector.JOB_NAME, result=report)


def test_failures_with_the_same_cause_are_one_problem(make_run):
    make_run(detail="Order 1 not found", model="openai/gpt-4.1")
    make_run(detail="Order 22 not found", model="openai/gpt-4.1-mini", agent_version=2)

    [problem] = collect()
    assert (problem.count, problem.run_count) == (2, 2)
    assert problem.message == "Order ‹number› not found"
    assert (problem.kind, problem.subject) == ("model_error", "openai")
    assert {tag.value for tag in problem.tags.all()} == {
        *("1", "2", "openai/gpt-4.1", "openai/gpt-4.1-mini")
    }


def test_a_run_is_counted_once_although_it_is_read_again(make_run):
    make_run()
    for _ in range(3):
        [problem] = collect()

    assert problem.count == ProblemHour.objects.get().count == 1
    assert ProblemTag.objects.filter(kind="model").get().count == 1


def test_tool_errors_of_a_completed_run_count_as_often_as_they_happened(make_tool_error):
    make_tool_error("City 7 is unknown", times=3)

    [problem] = collect()
    assert (problem.subject, problem.count, problem.run_count) == ("weather", 3, 1)


def test_names_that_a_model_invents_are_one_problem(make_tool_error):
    for name in ("get_rain", "get_snow"):
        run = make_tool_error(f"Error: There is no tool named '{name}'. Available tools: a.")
        run.steps.update(action=name)

    collector.collect()

    assert [(row.count, row.subject) for row in Problem.objects.all()] == [(2, "")]


def test_a_call_that_a_budget_refused_is_no_problem(make_tool_error):
    run = make_tool_error("You have reached your limit.")
    data = {"error_type": "QuotaExceeded", "step": 1}
    RunEvent.objects.create(run=run, seq=1, type="tool_response", time=run.ended_at, data=data)

    assert not collect()


def test_guardrail_blocks_are_grouped_by_rule(make_run):
    rule = GuardrailPattern.objects.create(name="No salaries")
    for _ in range(2):
        run = make_run(status="blocked", stopped_reason="blocked", step_types="|guardrail|")
        about = {"agent_name": "helper", "stage": "input", "action": "block", "step": 1}
        GuardrailHit.objects.create(run=run, pattern=rule, at=run.ended_at, **about)

    [problem] = collect()
    assert (problem.kind, problem.subject, problem.count) == ("guardrail", "No salaries", 2)


@pytest.mark.parametrize(
    ("reason", "detail", "kind"),
    [
        ("max_steps_reached", "", "step_limit"),
        ("duplicate_tool_call", "The agent called 'weather' 3 times with…", "loop"),
        ("tool_call_limit", "It called 'weather' too often.", "tool_limit"),
        ("cancelled", "Gave up after 3 plans. The sum is wrong.", "replan_limit"),
    ],
)
def test_limits_are_problems(make_run, reason, detail, kind):
    make_run(status="stopped", stopped_reason=reason, detail=detail)

    assert [problem.kind for problem in collect()] == [kind]


@pytest.mark.parametrize(
    "values",
    [
        {"status": "stopped", "stopped_reason": "budget_exceeded"},
        {"status": "stopped", "stopped_reason": "cancelled", "detail": ""},
        {"status": "completed", "stopped_reason": "completed", "answer": "42"},
        {"topic": "trial.experiment.1.a"},
        {"route": "imported"},
        {"origin_step": 1},
    ],
    ids=lambda values: "-".join(values.values() if "status" in values else values),
)
def test_what_is_no_problem(make_run, values):
    run = make_run()
    Run.objects.filter(pk=run.pk).update(**values)

    assert not collect()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("EmptyReply", "empty_answer"),
        ("OutputDecodingFailed", "schema"),
        ("NoPlan", "no_plan"),
        ("SomethingElse", "run_error"),
        ("PlanParseError", "model_error"),
    ],
)
def test_errors_have_kinds(make_run, error, kind):
    make_run(error=error)

    assert [problem.kind for problem in collect()] == [kind]


def test_a_completed_run_without_an_answer_is_a_problem(make_run):
    make_run(status="completed", stopped_reason="completed", detail="")

    assert [problem.kind for problem in collect()] == ["empty_answer"]


def test_bad_ratings_are_grouped_by_reason_without_the_comment(make_run, person, stranger):
    done = {"status": "completed", "stopped_reason": "completed", "answer": "42"}
    for user in (person, stranger):
        about = {"is_good": False, "reason": "wrong", "comment": "My salary is 5"}
        Rating.objects.create(run=make_run(**done, user=user), user=user, **about)
    Rating.objects.create(run=make_run(**done), user=person, is_good=True)

    assert not collect()  # a reason may follow
    Rating.objects.update(rated_at=timezone.now() - timedelta(minutes=2))
    [problem] = collect()
    assert (problem.kind, problem.subject, problem.count) == ("rating", "wrong", 2)
    assert problem.message == ""


def test_a_rejected_call_is_a_problem_of_its_tool_and_a_question_is_not(make_run):
    run = make_run(status="completed", stopped_reason="completed", answer="42", detail="")
    about = {"run": run, "agent_name": "helper", "arguments": "{}", "digest": "d"}
    about |= {"verdict": "rejected", "asked_at": run.ended_at, "reason": "Private!"}
    Approval.objects.create(step=1, tool="send_mail", why="tool", call_id="a", **about)
    Approval.objects.create(step=2, tool="ask", why="elicitation", call_id="b", **about)

    [problem] = collect()
    assert (problem.kind, problem.subject, problem.message) == ("rejected", "send_mail", "")


def test_runs_from_before_an_upgrade_are_grouped_quietly(make_run, monkeypatch):
    monkeypatch.setattr(collector, "BATCH", 2)
    PeriodicJob.objects.all().delete()
    for age in (1, 2, 3, 4, 5):
        make_run(timedelta(days=age))
    make_run(timedelta(days=99), detail="Long ago")

    [problem] = collect()
    assert problem.count == 5
    assert timezone.now() - problem.first_seen > timedelta(days=4)
    assert not ProblemChange.objects.filter(is_announced=False).exists()


def test_a_run_committed_late_is_still_found(make_run):
    make_run(timedelta(seconds=0))
    collect()
    make_run(timedelta(seconds=90), detail="Slow commit")

    assert len(collect()) == 2


def test_deleted_runs_leave_the_counts(make_run):
    make_run()
    collect()
    Run.objects.all().delete()

    problem = Problem.objects.get()
    assert (problem.count, ProblemRun.objects.count()) == (1, 0)
    assert ProblemHour.objects.get().count == 1


def test_more_runs_than_a_batch_are_counted_in_one_go(make_run, monkeypatch):
    monkeypatch.setattr(collector, "BATCH", 2)
    at = timedelta(minutes=1)
    for _ in range(5):
        make_run(at)

    assert collect()[0].count == 5
