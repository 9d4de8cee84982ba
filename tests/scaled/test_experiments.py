"""With workers, an experiment's runs are enqueued, and any process continues it."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.engine.testing import Says
from agents.models import Run
from agents.review.experiments import service
from agents.review.models import Example, ExampleSet
from tests.review.experiments.conftest import RECORDED_SUM, SUM, current_spec, finish

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_a_worker_drives_the_runs_of_an_experiment(scripted):
    scripted(SUM, Says(answer="It is 42."))
    example_set = await ExampleSet.objects.acreate(name="Sums")
    await Example.objects.acreate(
        name="Sum",
        example_set=example_set,
        question="6 * 7?",
        expected="It is 42.",
        observations=[RECORDED_SUM],
    )
    agent, spec = await current_spec()
    start = sync_to_async(service.start_examples)
    options = service.Options(target="published")
    experiment = await start(example_set, agent, spec, None, options)

    await service.advance(experiment.pk)  # the web process
    run = await Run.objects.aget()
    assert run.owner == ""
    await runs.drive(run.pk)  # a worker

    experiment = await finish(experiment)
    assert (experiment.state, experiment.score) == ("done", 1.0)
