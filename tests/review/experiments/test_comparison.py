"""Two backtests of the same runs are compared with each other."""

import pytest
from django.utils import timezone

from agents.models import Run
from agents.review.experiments.models import Experiment
from agents.review.experiments.scoring import checks
from agents.review.experiments.scoring.comparison import INTENDED, compare

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded(db):
    return Run.objects.create(query="?", topic="chat.1", status="completed", answer="It is 7.")


def make_backtest(origin, answer="", state="passed", cost=None, calls=(), score=0.1):
    """Create a backtest of one run, unjudged, with these calls of the database."""
    experiment = Experiment.objects.create(kind="backtest", state="done", target="draft")
    run = Run.objects.create(
        query="?", topic=f"trial.experiment.{experiment.pk}.a", answer=answer, cost=cost
    )
    now = timezone.now()
    for number, (sql, status) in enumerate(calls, start=1):
        run.steps.create(
            number=number, kind="tool", action="database", action_input={"sql": sql},
            status=status, started_at=now, ended_at=now,
        )  # fmt: skip
    experiment.results.create(
        number=1, name="?", origin=origin, run=run, state=state, score=score,
        checks=[{"kind": checks.RECORDED}],
    )  # fmt: skip
    return experiment


@pytest.mark.parametrize(
    ("new_answer", "verdict"), [("It is 42.", "same"), ("Nobody knows.", "changed")]
)
def test_answers_are_compared_with_each_other_not_with_the_recording(
    recorded, new_answer, verdict
):
    old = make_backtest(recorded, "It is 42.")

    assert compare(old, make_backtest(recorded, new_answer)).verdicts == {verdict: 1}


def test_a_failing_call_that_changed_is_named_and_counted(recorded):
    old = make_backtest(recorded, "It is 7.", calls=[("SELECT totl", "failed")])
    new = make_backtest(recorded, state="diverged", calls=[("SELECT total", "cancelled")])

    assert compare(old, new, {recorded.pk}, "database").verdicts == {INTENDED: 1}
    assert compare(old, old, {recorded.pk}, "database").verdicts == {"same": 1}
    assert compare(old, new, {recorded.pk}, "search").verdicts == {"stopped": 1}


def test_live_calls_of_the_failing_tool_are_counted(recorded):
    old = make_backtest(recorded, "Sorry.", calls=[("a", "failed"), ("b", "failed")])
    new = make_backtest(recorded, "It is 7.", calls=[("c", "done")])

    comparison = compare(old, new, {recorded.pk}, "database")

    assert (comparison.old_calls.failures, comparison.old_calls.count) == (2, 2)
    assert (comparison.new_calls.failures, comparison.new_calls.count) == (0, 1)


@pytest.mark.parametrize(("state", "has_cost"), [("passed", True), ("diverged", False)])
def test_costs_of_stopped_runs_are_left_out(recorded, state, has_cost):
    old = make_backtest(recorded, "It is 7.", cost=0.04)
    new = make_backtest(recorded, "It is 7.", state, cost=0.01)

    assert (compare(old, new).cost is not None) is has_cost
