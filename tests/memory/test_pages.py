"""The memory page: everything a user can do with what is remembered about them."""

import pytest
from django.urls import reverse

from agents.memory import store
from agents.models import Memory

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client, person):
    client.force_login(person)

    def get(**query):
        return client.get(reverse("people:memory"), query).content.decode()

    return get


def post(client, name, *args, **data):
    return client.post(reverse(f"people:{name}", args=args), data)


def test_an_empty_memory_says_so(page):
    assert "Nothing is remembered yet." in page()


def test_a_fact_is_added_found_and_edited(client, page, person):
    post(client, "memory", text="I live in Tokyo")
    memory = Memory.objects.get()
    assert memory.subject == "home city"

    post(client, "edit_memory", memory.pk, text="I live in Kyoto", subject="home city")

    assert "I live in Kyoto" in page(q="kyoto")
    assert "Nothing matches" in page(q="tokyo")
    form = client.get(reverse("people:edit_memory", args=[Memory.objects.current().get().pk]))
    assert "I live in Tokyo" in form.content.decode()


def test_a_secret_is_refused_with_a_sentence_and_stays_in_the_form(client, page):
    response = post(client, "memory", text="My card is 4111 1111 1111 1111")

    assert response.status_code == 422
    assert "numbers aren&#x27;t saved" in response.content.decode()
    assert "4111 1111" in response.content.decode()


def test_deleting_can_be_undone(client, page, remember):
    memory = remember("I like tea")
    post(client, "delete_memory", memory.pk)
    assert "“I like tea” was deleted." in page()

    post(client, "restore_memory", memory.pk)

    assert "was deleted" not in page()
    assert Memory.objects.current().exists()


def test_a_suggestion_is_saved_or_dismissed(client, page, remember):
    memory = remember("I like tea", reason="These aren't your own words.")
    assert "own words" in page()

    post(client, "accept_memory", memory.pk)

    assert Memory.objects.current().get() == memory


def test_memory_is_turned_off_and_on(client, page, person):
    post(client, "switch_memory", on="0")
    assert "Memory is off." in page()

    post(client, "switch_memory", on="1")
    assert "Turn memory off" in page()


def test_the_download_has_the_history(client, page, remember):
    remember("I live in Tokyo", subject="home city")
    remember("I live in Kyoto", subject="home city")

    found = client.get(reverse("people:export_memory")).json()["memories"]

    assert [(row["text"], row["valid_to"] is None) for row in found] == [
        ("I live in Tokyo", False),
        ("I live in Kyoto", True),
    ]


def test_everything_can_be_deleted(client, page, remember, stranger):
    remember("I like tea")
    others = remember("I like coffee", user=stranger)

    post(client, "clear_memory")

    assert list(Memory.objects.all()) == [others]


def test_a_card_in_a_chat_is_undone_in_one_click(client, page, remember):
    memory = remember("I like tea")

    url = reverse("people:undo_memory", args=[memory.pk])
    card = client.post(url, headers={"HX-Request": "true"}).content.decode()

    assert 'data-state="removed"' in card
    assert not Memory.objects.current().exists()
    assert store.of_scope(store.MemoryScope(user=memory.user_id)).count() == 1
