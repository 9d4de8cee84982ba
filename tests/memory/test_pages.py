"""The memory page: everything a user can do with what is remembered about them."""

import pytest
from django.urls import reverse

from agents.models import Memory

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(person_client):
    def get(**query):
        return person_client.get(reverse("people:memory"), query).text

    return get


def post(client, name, *args, **data):
    return client.post(reverse(f"people:{name}", args=args), data)


def test_an_empty_memory_says_so(page):
    assert "No memories yet." in page()


def test_a_fact_is_added_found_and_edited(person_client, page, person):
    post(person_client, "memory", text="I live in Tokyo")
    memory = Memory.objects.get()
    assert memory.subject == "home city"

    post(person_client, "edit_memory", memory.pk, text="I live in Kyoto", subject="home city")

    assert "I live in Kyoto" in page(q="kyoto")
    assert "Nothing matches" in page(q="tokyo")
    form = person_client.get(
        reverse("people:edit_memory", args=[Memory.objects.current().get().pk])
    )
    assert "I live in Tokyo" in form.text


def test_a_secret_is_refused_with_a_sentence_and_stays_in_the_form(person_client, page):
    response = post(person_client, "memory", text="My card is 4111 1111 1111 1111")

    assert response.status_code == 422
    assert "numbers aren&#x27;t saved" in response.text
    assert "4111 1111" in response.text


def test_deleting_can_be_undone(person_client, page, remember):
    memory = remember("I like tea")
    post(person_client, "delete_memory", memory.pk)
    assert "“I like tea” was deleted." in page()

    person_client.post(f"{reverse('people:restore_deleted')}?items=memory:{memory.pk}")

    assert "was restored" in page()
    assert Memory.objects.current().exists()


def test_a_suggestion_is_saved_or_dismissed(person_client, page, remember):
    memory = remember("I like tea", reason="These aren't your own words.")
    assert "own words" in page()

    post(person_client, "accept_memory", memory.pk)

    assert Memory.objects.current().get() == memory


def test_memory_is_turned_off_and_on(person_client, page, person):
    post(person_client, "switch_memory", on="0")
    assert "Memory is off." in page()

    post(person_client, "switch_memory", on="1")
    assert "Turn off memory" in page()


def test_the_download_has_the_history(person_client, page, remember):
    remember("I live in Tokyo", subject="home city")
    remember("I live in Kyoto", subject="home city")

    found = person_client.get(reverse("people:export_memory")).json()["memories"]

    assert [(row["text"], row["valid_to"] is None) for row in found] == [
        ("I live in Tokyo", False),
        ("I live in Kyoto", True),
    ]


def test_everything_can_be_deleted(person_client, page, remember, stranger):
    remember("I like tea")
    others = remember("I like coffee", user=stranger)

    post(person_client, "clear_memory")

    assert list(Memory.objects.all()) == [others]


def test_a_card_in_a_chat_is_undone_in_one_click(person_client, page, remember):
    memory = remember("I like tea")

    url = reverse("people:undo_memory", args=[memory.pk])
    card = person_client.post(url, headers={"HX-Request": "true"}).text

    assert 'data-state="removed"' in card
    assert not Memory.objects.current().exists()
    assert memory.siblings.count() == 1
