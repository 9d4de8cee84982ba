"""Experiments: started, advanced, scored and canceled."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.engine.testing import Says
from agents.models import Agent, AuditEntry, Run, ToolRegistration
from agents.review.experiments import service
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import Experiment
from agents.review.experiments.sources.sources import PastRuns
from agents.review.models import Example, Rating, Review
from tests.conftest import run_question
from tests.runs.test_plans import plan_reply, sum_of

from .conftest import SUM, backtest, current_spec, finish, results_of, run_set

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_a_set_is_run_on_recorded_results_and_scored(scripted, example):
    scripted(SUM, Says(answer="It is 42."))

    experiment = await run_set(example.example_set)

    (result,) = await results_of(experiment)
    assert (experiment.state, experiment.score, experiment.passed) == ("done", 1.0, 1)
    assert (result.state, result.divergence) == ("passed", None)
    assert result.run.is_experiment_run
    await example.arefresh_from_db()
    assert example.score == 1.0


async def test_nothing_is_executed_and_a_call_that_was_not_recorded_stops_the_run(
    scripted, example
):
    scripted(Says.call("calculator", expression="1 + 1"), Says(answer="It is 2."))

    experiment = await run_set(example.example_set)

    (result,) = await results_of(experiment)
    assert (result.state, result.score) == ("diverged", 0.0)
    assert result.divergence["made"] == "calculator: 1 + 1"
    assert result.divergence["recorded"] == "calculator: 6 * 7"
    assert result.run.status == Run.Status.STOPPED
    assert result.run.detail.endswith("calculator: 1 + 1")


async def test_a_draft_runs_live_only_with_tools_that_its_tester_can_run(
    scripted, tester, administrator, example
):
    agent, spec = await current_spec()
    draft = service.Options(is_live=True)
    start = sync_to_async(service.start_examples)

    with pytest.raises(ExperimentRejected, match="calculator"):
        await start(example.example_set, agent, spec, tester, draft)
    assert await start(example.example_set, agent, spec, administrator, draft)
    published = service.Options(is_live=True, target=Experiment.Target.PUBLISHED)
    assert await start(example.example_set, agent, spec, tester, published)


async def test_a_draft_repeats_past_runs_before_it_is_saved(scripted, person, tester):
    scripted(SUM, Says(answer="It is 42."))
    origin = await run_question("6 * 7?", user=person)
    model = scripted(SUM, Says(answer="It is 42."))

    experiment = await backtest(tester, PastRuns(count=5), instructions="Be brief, please.")

    (result,) = await results_of(experiment)
    assert (result.origin, result.verdict, result.score) == (origin, "same", 1.0)
    assert "Be brief, please." in str(model.requests[0]["messages"][0])
    assert result.checks[0]["kind"] == "similar_recorded"
    assert result.run.user_id == tester.pk
    assert await AuditEntry.objects.filter(action="review.backtest").acount() == 1


async def test_a_skipped_call_is_the_first_divergence_of_a_finished_run(
    scripted, person, tester
):
    scripted(SUM, Says(answer="It is 42."))
    await run_question("6 * 7?", user=person)
    scripted(Says(answer="I guess 40."))

    experiment = await backtest(tester, PastRuns())

    (result,) = await results_of(experiment)
    assert result.divergence["kind"] == "missing"
    assert (result.state, result.verdict) == ("failed", "changed")


async def test_a_corrected_answer_decides_what_is_better(scripted, person, tester):
    scripted(Says(answer="It is 41."))
    origin = await run_question("6 * 7?", user=person)
    await Review.objects.acreate(run=origin, correction="It is 42.")
    scripted(Says(answer="It is 42."))

    experiment = await backtest(tester, PastRuns())

    (result,) = await results_of(experiment)
    assert (result.verdict, result.score) == ("better", 1.0)
    assert result.checks[0]["kind"] == "similar_approved"


async def test_only_runs_that_the_user_can_review_are_repeated(
    scripted, person, stranger, tester
):
    scripted(Says(answer="One."), Says(answer="Two."), Says(answer="Two."))
    await run_question("A?", user=person)
    own = await run_question("B?", user=stranger, topic="chat.2")

    experiment = await backtest(stranger, PastRuns())

    (result,) = await results_of(experiment)
    assert result.origin == own


async def test_runs_are_chosen_by_rating(scripted, person, tester):
    scripted(Says(answer="One."), Says(answer="Two."), Says(answer="One."))
    bad = await run_question("A?", user=person)
    await run_question("B?", user=person, topic="chat.2")
    await Rating.objects.acreate(run=bad, user=person, is_good=False)

    experiment = await backtest(tester, PastRuns(rating="down"))

    assert [result.origin for result in await results_of(experiment)] == [bad]


async def test_runs_with_files_are_left_out_with_a_reason(scripted, person, tester):
    scripted(Says(answer="One."), Says(answer="Two."), Says(answer="Two."))
    first = await run_question("A?", user=person)
    await Run.objects.filter(pk=first.pk).aupdate(files=[{"name": "a.pdf"}])
    await run_question("B?", user=person, topic="chat.2")

    experiment = await backtest(tester, PastRuns())

    assert (experiment.count, experiment.left_out) == (1, [["files", 1]])


async def test_without_runs_nothing_is_started(tester):
    with pytest.raises(ExperimentRejected, match="nothing to run"):
        await backtest(tester, PastRuns())


async def test_a_canceled_experiment_starts_nothing_more(scripted, example, tester):
    await Example.objects.acreate(
        name="Another", example_set=example.example_set, question="7 * 7?"
    )
    agent, spec = await current_spec()
    start = sync_to_async(service.start_examples)
    options = service.Options(target="published")
    experiment = await start(example.example_set, agent, spec, tester, options)
    await sync_to_async(service.request_cancel)(experiment)

    experiment = await finish(experiment)

    assert experiment.state == Experiment.State.CANCELLED
    assert {result.state for result in await results_of(experiment)} == {"cancelled"}
    assert await Run.objects.acount() == 0


async def test_an_experiment_continues_in_another_process(scripted, example):
    scripted(SUM, Says(answer="It is 42."))
    agent, spec = await current_spec()
    start = sync_to_async(service.start_examples)
    options = service.Options(target="published")
    experiment = await start(example.example_set, agent, spec, None, options)
    work = await sync_to_async(service._advance)(experiment.pk)
    (run,) = work.started  # the process ends before it launches the run

    runs.resume(run)
    await runs.wait(run)
    experiment = await finish(experiment)

    assert (experiment.state, experiment.score) == ("done", 1.0)


async def test_a_live_call_with_side_effects_needs_approval_and_is_not_made(scripted, example):
    await ToolRegistration.objects.filter(name="calculator").aupdate(effect="at_most_once")
    scripted(SUM)

    experiment = await run_set(example.example_set, is_live=True)

    (result,) = await results_of(experiment)
    assert (result.state, result.score) == ("approval", 0.0)
    assert not await result.run.approvals.aexists()
    assert not await result.run.events.filter(type="tool_response").aexists()


async def test_a_live_call_that_reads_is_executed(scripted, example):
    scripted(Says.call("calculator", expression="40 + 2"), Says(answer="It is 42."))

    experiment = await run_set(example.example_set, is_live=True)

    assert experiment.score == 1.0


class Slow:
    """A model that doesn't answer in time."""

    async def stream(self, **request):
        await asyncio.sleep(30)
        yield {}


async def test_a_question_that_takes_too_long_ends_with_a_reason(example, scripted):
    scripted(model=Slow())

    experiment = await run_set(example.example_set, deadline=0)

    (result,) = await results_of(experiment)
    assert (result.state, result.score) == ("error", 0.0)
    assert "timeout" in result.problem


async def test_a_plan_repeats_on_recorded_results(scripted, person, tester):
    await Agent.objects.aupdate(mode="plan")
    said = plan_reply(sum_of("sum", "6 * 7")), Says(answer="It is 42.")
    scripted(*said)
    await run_question("6 * 7?", user=person)
    scripted(*said)

    experiment = await backtest(tester, PastRuns())

    (result,) = await results_of(experiment)
    assert (result.state, result.divergence) == ("passed", None)
