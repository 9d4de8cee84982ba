"""What is saved with a run for later searches."""

import pytest

from agents.engine.testing import Says
from agents.models import Agent, ReviewScope, Run
from tests.conftest import run_question

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.usefixtures("agent", "run_executor")
async def test_runs_with_equal_settings_have_the_same_version(scripted):
    scripted(Says(answer="1"), Says(answer="2"), Says(answer="3"))
    first, second = await run_question("One?"), await run_question("Two?")
    await Agent.objects.aupdate(instructions="Be brief.")
    third = await run_question("Three?")

    versions = [(await Run.objects.aget(pk=run.pk)).version for run in (first, second, third)]

    assert len(versions[0]) == 8
    assert versions[0] == versions[1] != versions[2]


@pytest.mark.usefixtures("agent", "run_executor")
async def test_a_finished_run_has_a_duration(scripted):
    scripted(Says(answer="42"))

    run = await Run.objects.aget(pk=(await run_question("6 * 7")).pk)

    assert run.seconds == pytest.approx((run.ended_at - run.started_at).total_seconds())


def test_a_reviewer_sees_the_runs_in_their_scope_and_their_own(reviewer):
    helper, other = (Agent.objects.create(name=name) for name in ("helper", "other"))
    runs = [
        Run.objects.create(topic="a", agent=helper, query="a"),
        Run.objects.create(topic="b", agent=other, query="b"),
        Run.objects.create(topic="c", agent=other, query="c", user=reviewer),
    ]
    assert set(Run.objects.for_user(reviewer)) == set(runs)

    ReviewScope.objects.create(user=reviewer).agents.add(helper)

    assert set(Run.objects.for_user(reviewer)) == {runs[0], runs[2]}
