"""The memory page: everything a user can do with what is remembered about them."""

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from agents.accounts.models import Profile
from agents.models import Memory, MemoryExclusion, Personalization

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(person_client):
    def get(**query):
        return person_client.get(reverse("people:personalization"), query).text

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


def test_instructions_style_and_switches_are_saved_at_once(person_client, person):
    post(person_client, "personalization", about_me="I sell tea.\r\n", has_instructions="on")
    profile = Profile.objects.get(user=person)
    assert (profile.about_me, profile.has_instructions) == ("I sell tea.", True)
    assert not profile.has_memory

    sent = {"has_memory": "on", "learns": "on", "length": "short"}
    post(person_client, "personalization", **sent)
    profile.refresh_from_db()
    saved = Personalization.objects.get(user=person)
    assert profile.has_memory
    assert (saved.learns, saved.learns_style) == (True, False)
    assert saved.chosen == {"length": "short"}


def test_a_group_without_memory_keeps_its_members_choices(person_client, person):
    group = Group.objects.create(name="legal")
    person.groups.add(group)
    MemoryExclusion.objects.create(group=group)

    page = person_client.get(reverse("people:personalization"))
    assert "has_memory" not in page.context["form"].fields
    post(person_client, "personalization", about_me="I sell tea.")
    assert Profile.objects.get(user=person).has_memory


def test_a_text_that_is_too_long_is_explained_and_stays_in_the_form(person_client):
    text = "x" * (Profile.MAX_INSTRUCTIONS + 1)
    response = post(person_client, "personalization", about_me=text)
    assert response.status_code == 422
    assert text in response.text


def test_memories_and_lessons_are_in_one_list(person_client, remember, experience):
    remember("I like tea")
    experience(text="GMV means revenue")

    rows = person_client.get(reverse("people:personalization")).context["rows"]
    assert [bool(row.lesson) for row in rows] == [True, False]
    assert person_client.get("/account/memory/")["Location"] == "/account/personalization/"
    assert person_client.get("/account/learning/")["Location"] == "/account/personalization/"


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
