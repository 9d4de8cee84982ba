"""Users are told that a run has ended or waits for them, and nobody else is."""

import pytest
from django.urls import reverse

from agents.models import Run
from chat.live import run_news
from chat.models import ChatSession
from chat.sharing import members
from tests.access.audit.rows import create_question

pytestmark = pytest.mark.django_db


@pytest.fixture
def shared(person, stranger, django_user_model, agent):
    """A chat of Ada with a writer and a reader, and a run of the writer."""
    django_user_model.objects.create_user("rei")
    chat = ChatSession.objects.create(user=person, title="<b>Tea</b>")
    members.add_member(chat, stranger.get_username(), "write")
    members.add_member(chat, "rei", "read")
    return create_question(chat, stranger, "Which?")


def test_only_the_runs_user_is_told_that_it_ended(shared, person, stranger):
    news = run_news._news(shared)

    assert news.notified_users == {stranger.pk}
    assert person.pk in news.list_users
    assert (news.entry["status"], news.entry["title"]) == ("completed", "<b>Tea</b>")


def test_everyone_who_can_approve_is_notified(shared, person, stranger):
    Run.objects.filter(pk=shared.pk).update(status=Run.Status.WAITING)

    assert run_news._news(shared).notified_users == {person.pk, stranger.pk}


def test_a_run_outside_of_chats_sends_no_notification(person, agent):
    run = Run.objects.create(user=person, query="?", topic="trial.1", agent_name="helper")

    assert run_news._news(run) is None


def test_a_frame_cannot_contain_markup(shared):
    html = run_news.render(run_news._news(shared).entry)

    assert "&lt;b&gt;Tea" in html
    assert f'data-run="{shared.pk}"' in html


def test_a_page_without_a_socket_polls_its_users_runs(client, shared, person, stranger):
    address = reverse("chat:news")
    client.force_login(stranger)
    assert client.get(address).json() == {"runs": []}
    (told,) = client.get(address, {"run": [shared.pk, "x", "9" * 30]}).json()["runs"]
    assert (told["run"], told["status"]) == (shared.pk, "completed")

    client.force_login(person)
    assert client.get(address, {"run": shared.pk}).json() == {"runs": []}
