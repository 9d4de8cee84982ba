import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission

from agents.catalog import agent_spec
from agents.engine.testing import Says
from agents.models import Agent
from agents.review.experiments import service
from agents.review.experiments.models import Experiment
from agents.review.models import Example, ExampleSet

SUM = Says.call("calculator", expression="6 * 7")
RECORDED_SUM = {
    "tool": "calculator",
    "arguments": {"expression": "6 * 7"},
    "observation": "42",
    "is_error": False,
}


@pytest.fixture
def example_set(db):
    return ExampleSet.objects.create(name="Sums")


@pytest.fixture
def example(example_set):
    return Example.objects.create(
        name="The sum",
        example_set=example_set,
        question="What is 6 * 7?",
        expected="It is 42.",
        observations=[RECORDED_SUM],
    )


@pytest.fixture
def tester(django_user_model):
    """An administrator of agents who reviews and reruns others' runs."""
    user = django_user_model.objects.create_user("tester", is_staff=True)
    names = ("review_runs", "rerun_runs", "change_agent", "view_agent")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


async def current_spec(**changes):
    agent = await Agent.objects.aget(is_default=True)
    return agent, {**await sync_to_async(agent_spec.describe)(agent), **changes}


async def finish(experiment):
    """Advance an experiment to its end."""
    async with asyncio.timeout(20):
        while await Experiment.objects.open().filter(pk=experiment.pk).aexists():
            await service.advance(experiment.pk)
            await asyncio.sleep(0.01)
    return await Experiment.objects.aget(pk=experiment.pk)


async def run_set(example_set, user=None, **options):
    agent, spec = await current_spec()
    start = sync_to_async(service.start_examples)
    options.setdefault("target", Experiment.Target.PUBLISHED)
    chosen = service.Options(**options)
    return await finish(await start(example_set, agent, spec, user, chosen))


async def backtest(user, source, **changes):
    agent, spec = await current_spec(**changes)
    start = sync_to_async(service.start_backtest)
    return await finish(await start(agent, spec, source, user))


async def results_of(experiment):
    related = experiment.results.select_related("run", "origin", "example")
    return [result async for result in related]
