"""The command palette finds a user's own and shared chats, and agents they may ask."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from chat.models import ChatSession, Message

pytestmark = pytest.mark.django_db


def entries(client, query="", **more):
    return client.get(reverse("chat:palette"), {"q": query, **more}).json()


@pytest.fixture
def chats(person, stranger):
    tea = ChatSession.objects.create(user=person, title="Tea & <b>")
    Message.objects.create(session=tea, author=person, text="Which harvest?", client_id="1")
    return tea, ChatSession.objects.create(user=stranger, title="Tea of another")


def test_only_chats_of_the_user_are_found(person_client, chats):
    assert [one["label"] for one in entries(person_client)["chats"]] == ["Tea & <b>"]
    assert [one["label"] for one in entries(person_client, "tea")["chats"]] == ["Tea & <b>"]
    assert entries(person_client, "another")["chats"] == []


def test_a_text_is_found_at_its_message(person_client, chats):
    (found,) = entries(person_client, "harvest")["chats"]

    assert found["hint"] == "Which harvest?"
    assert found["href"].startswith(f"/chat/{chats[0].pk}/")
    assert found["href"] != f"/chat/{chats[0].pk}/"


def test_agents_start_a_new_chat(person_client, agent):
    (found,) = entries(person_client, agents="1")["agents"]

    assert (found["label"], found["href"]) == ("helper", "/?agent=helper")
    assert "agents" not in entries(person_client)


def test_staff_find_the_console_pages_they_can_open_from_every_page(person_client, person):
    assert entries(person_client, agents=1)["pages"] == []

    person.is_staff = True
    person.save()
    person.user_permissions.add(Permission.objects.get(codename="view_alertchannel"))
    (page,) = entries(person_client, agents=1)["pages"]
    assert (page["label"], page["href"]) == (
        "Alerts",
        "/admin/alerts/alertchannel/",
    )
