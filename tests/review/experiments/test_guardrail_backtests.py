"""Backtests of guardrails: experiments whose cases are texts of past runs."""

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from agents.models import GuardrailPattern, Run
from agents.review.experiments import service
from agents.review.experiments.models import Experiment, ExperimentResult
from agents.review.experiments.scoring import hits
from agents.review.experiments.sources import sources
from tests.conftest import as_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]
RULE = GuardrailPattern(name="Fish", pattern="swordfish", stage="input", action="block")


@pytest.fixture
def backtest(administrator, person):
    """A backtest of two runs, one of them with a hit."""
    for query in ("A swordfish", "A trout"):
        Run.objects.create(user=person, agent_name="helper", status="completed", query=query)
    questions = sources.checked_runs(administrator, 100)
    return service.start_guardrail(RULE, questions, administrator)


def page(user, experiment, **headers):
    client = as_user(user)
    url = f"/admin/experiments/experiment/{experiment.pk}/change/"
    return client.get(url, headers=headers)


def test_only_hits_are_saved_and_they_go_with_their_run(backtest):
    async_to_sync(service.advance)(backtest.pk)

    backtest.refresh_from_db()
    (result,) = backtest.results.all()
    assert (backtest.state, backtest.passed, backtest.count) == ("done", 1, 2)
    assert (result.state, result.checks[0]["match"]) == ("failed", "swordfish")

    result.origin.delete()
    assert not backtest.results.exists()


def test_words_are_backtested(administrator, person):
    for query in ("A Swordfish", "Swordfishes"):
        Run.objects.create(user=person, agent_name="helper", status="completed", query=query)
    rule = GuardrailPattern(name="Fish", kind="words", pattern="swordfish", stage="input")
    questions = sources.checked_runs(administrator, 100)

    experiment = service.start_guardrail(rule, questions, administrator)
    async_to_sync(service.advance)(experiment.pk)

    (result,) = experiment.results.all()
    assert result.checks[0]["match"] == "Swordfish"


def test_a_backtest_continues_in_turns(backtest, administrator, monkeypatch):
    monkeypatch.setattr(hits, "PATTERN_BATCH", 1)

    async_to_sync(service.advance)(backtest.pk, seconds=0)
    part = page(administrator, backtest, hx_request="true").text
    assert "1 of 2 finished" in part

    async_to_sync(service.advance_open)()
    part = page(administrator, backtest, hx_request="true").text
    assert "2 runs checked." in part


def test_a_backtest_is_canceled(backtest):
    service.request_cancel(backtest)

    async_to_sync(service.advance)(backtest.pk)

    backtest.refresh_from_db()
    assert (backtest.state, backtest.passed) == ("cancelled", 0)


def test_another_process_continues_what_a_dead_one_was_checking(backtest):
    long_ago = timezone.now() - ExperimentResult.LEASE
    backtest.results.update(state=ExperimentResult.State.SCORING, lease_until=long_ago)

    async_to_sync(service.advance)(backtest.pk)

    assert Experiment.objects.get().state == "done"


def test_only_who_started_a_backtest_of_a_guardrail_sees_it(
    backtest, administrator, django_user_model
):
    other = django_user_model.objects.create_superuser("other")

    assert page(administrator, backtest).status_code == 200
    assert page(other, backtest).status_code == 404
