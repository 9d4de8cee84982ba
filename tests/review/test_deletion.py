"""What is deleted with a chat or an account: everything derived from its text."""

import pytest

from agents.models import Run
from agents.review.models import Example
from chat.models import Message
from chat.sessions import deletion

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def again(run, user, topic):
    return Run.objects.create(
        user=user,
        topic=topic,
        agent_name=run.agent_name,
        query=run.query,
        status="completed",
        origin=run,
        origin_step=1,
    )


@pytest.fixture
def copies(personal_run, reviewer):
    """A rerun of another user's rerun, and an example made of it."""
    once = again(personal_run, reviewer, "rerun.1")
    twice = again(once, reviewer, "rerun.2")
    Example.objects.create(name="Who?", run=twice, agent_name="clerk", question=twice.query)
    return once, twice


def test_everything_derived_from_a_chat_is_deleted_with_it(personal_run, person, copies):
    chat = person.chat_sessions.create(title="Who?")
    Message.objects.create(session=chat, author=person, run=personal_run, text="Who?")

    deletion.delete_permanently(chat)

    assert not Run.objects.exists()
    assert not Example.objects.exists()


def test_everything_derived_from_a_users_runs_is_deleted_with_the_account(person, copies):
    person.delete()

    assert not Run.objects.exists()
    assert not Example.objects.exists()


def test_a_reviewers_reruns_are_deleted_with_them_and_the_origin_stays(
    personal_run, reviewer, copies
):
    reviewer.delete()

    assert list(Run.objects.all()) == [personal_run]
