"""The trace lists what a run was told, and links the runs that its reader can open."""

import pytest
from asgiref.sync import async_to_sync

from agents import runs
from agents.engine import prompt_parts
from agents.models import AgentStep, Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told(learner, person, stranger, experience, answered):
    """A finished run that got two experiences: of its user, and of another one for everyone."""

    def finish():
        experience(text="GMV means revenue", run=answered())
        theirs = answered(user=stranger, topic="chat.2")
        experience(text="GMV means sales", user=stranger, scope="agent", run=theirs)
        run = runs.prepare(query="Show the GMV by month", topic="chat.9", user=person)
        async_to_sync(_drive)(run)
        return run

    return finish


async def _drive(run):
    runs.launch(run)
    await runs.wait(run)
    await runs.shut_down(hand_over=False)


@pytest.mark.both_databases
def test_a_step_lists_its_experiences_and_links_only_what_its_reader_can_open(
    told, person_client
):
    run = told()
    step = AgentStep.objects.filter(run=run, notes__0__kind="experience").get()
    own, theirs = (Run.objects.get(topic=topic).pk for topic in ("chat.1", "chat.2"))

    text = person_client.get(f"/traces/{run.pk}/steps/{step.number}/").text
    assert "GMV means revenue" in text
    assert "GMV means sales" in text
    assert f'href="/traces/{own}/"' in text
    assert f'href="/traces/{theirs}/"' not in text


def test_others_do_not_read_the_experiences_of_a_run(told):
    run = told()
    step = AgentStep.objects.filter(run=run, notes__0__kind="experience").get()

    hidden = str(prompt_parts.remove_personal([step.notes, step.request]))
    assert "GMV means" not in hidden
    assert "Show the GMV by month" in hidden
