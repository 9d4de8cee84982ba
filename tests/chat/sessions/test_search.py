"""Full-text search over a user's chats."""

import tracemalloc
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Run
from chat.models import ChatSession, Message
from chat.sessions.listing import filing, search
from chat.sharing import members
from tests.conftest import as_user

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def say(chat, text, answer=""):
    run = Run.objects.create(
        user=chat.user, topic=f"x{Run.objects.count()}", query=text, answer=answer
    )
    return Message.objects.create(
        session=chat, author=chat.user, run=run, text=text, client_id=f"{run.pk}"
    )


def make(person, title, *pairs):
    chat = ChatSession.objects.create(user=person, title=title)
    for pair in pairs:
        say(chat, *pair)
    return chat


def titles(person, query):
    return [found.row.title for found in search.search(person, query)]


def test_chats_are_found_by_title_question_and_answer(person, stranger):
    make(person, "Tea"), make(person, "Ink", ("Why?", "Green **sencha**")), make(person, "Pen")
    make(stranger, "Tea of another", ("sencha", ""))

    assert titles(person, "tea") == ["Tea"]
    assert titles(person, "SENCHA why") == ["Ink"]
    assert titles(person, "ink sencha") == ["Ink"]
    assert titles(person, "sencha tea") == []
    assert titles(person, "%") == titles(person, "_") == titles(person, "  ") == []


def test_japanese_is_found_without_spaces_and_in_either_width(person):
    make(person, "在庫の確認", ("煎茶の在庫はいくつありますか?", "在庫は12個です。"))
    make(person, "ABC", ("料金は?", "月額は無料です。"))

    assert titles(person, "在庫") == ["在庫の確認"]
    assert titles(person, "煎茶の在庫") == ["在庫の確認"]
    assert titles(person, "ＡＢＣ") == ["ABC"]


def test_a_hit_shows_the_text_around_it_with_the_words_marked(person):
    words = "a long way before it " * 10
    chat = make(person, "T", (f"{words}<b>Sencha</b> & {words}", ""))
    message = chat.messages.get()

    [found] = search.search(person, "sencha")

    [hit] = found.hits
    assert "<mark>Sencha</mark>" in hit.excerpt
    assert "&lt;b" in hit.excerpt
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")
    assert hit.href == f"/chat/{chat.pk}/?message={message.pk}&q=sencha#message-{message.pk}"


@pytest.mark.parametrize("noise", ["[", "](", "[a]("])
def test_unclosed_markup_does_not_slow_the_search(noise):
    text = noise * 100_000 + " needle " + noise * 100_000

    assert "<mark>needle</mark>" in search.excerpt(text, ["needle"])


def test_an_excerpt_has_no_rules_of_tables_and_no_boxes_of_lists():
    text = "- [x] Done\n\n| Region | Revenue |\n|:--|--:|\n| Osaka | 14 |"

    assert search.excerpt(text, ["Revenue"]) == "- Done Region <mark>Revenue</mark> Osaka 14"


def test_an_excerpt_keeps_signs_that_are_no_markup():
    text = "## C# and 6 * 7\n> **Bold** `code`, 2*3 > 5, issue #42, ~3 s"

    assert search.excerpt(text, ["none"]) == (
        "C# and 6 * 7 Bold code, 2*3 &gt; 5, issue #42, ~3 s"
    )


def test_hits_are_grouped_and_their_number_is_limited(person):
    make(person, "T", *((f"sencha {n}", "") for n in range(5)))

    [found] = search.search(person, "sencha")

    assert [len(found.hits), found.more] == [3, 2]


def test_titles_come_before_texts_and_phrases_before_words(person):
    now = timezone.now()
    chats = [
        make(person, "Green tea"),
        make(person, "A", ("We drink green tea.", "")),
        make(person, "B", ("Tea that is green", "")),
    ]
    for at, chat in enumerate(chats):
        ChatSession.objects.filter(pk=chat.pk).update(updated_at=now + timedelta(hours=at))

    assert titles(person, "green tea") == ["Green tea", "A", "B"]


def test_shared_and_archived_chats_are_found_and_marked(person, stranger):
    shared, own = make(stranger, "Their sencha"), make(person, "My sencha")
    members.add_member(shared, person.username, "read")
    filing.archive(person, [own.pk])

    found = {each.row.title: each for each in search.search(person, "sencha")}

    assert found["Their sencha"].row.whose == stranger.username
    assert [found[t].is_archived for t in ("Their sencha", "My sencha")] == [False, True]
    members.remove_member(shared, person.pk)
    assert titles(person, "sencha") == ["My sencha"]


def test_a_result_keeps_the_search_and_the_page_shows_it(person):
    chat = make(person, 'Sencha & "more"')
    client = as_user(person)

    page = client.get("/chat/sessions/?q=sencha+%26").text

    assert f'href="/chat/{chat.pk}/?q=sencha+%26"' in page
    opened = client.get(f"/chat/{chat.pk}/?q=sencha+%26").text
    assert "<mark>Sencha</mark> <mark>&amp;</mark>" in opened


def test_deleted_and_temporary_chats_are_not_found(person):
    make(person, "sencha 1"), make(person, "sencha 2")
    ChatSession.objects.filter(title="sencha 1").update(deleted_at=timezone.now())
    ChatSession.objects.filter(title="sencha 2").update(is_temporary=True)

    assert titles(person, "sencha") == []


def test_every_chat_is_searched_however_many_there_are(person, monkeypatch):
    monkeypatch.setattr(search, "PART_SIZE", 2)
    for n in range(5):
        make(person, f"sencha {n}")

    assert len(titles(person, "sencha")) == 5


def test_the_palette_gets_the_same_results(person_client, person):
    chat = make(person, "T", ("sencha", ""))

    [found] = person_client.get("/chat/search/?q=sencha").json()["results"]

    assert (found["id"], found["url"]) == (chat.pk, f"/chat/{chat.pk}/")
    assert "<mark>sencha</mark>" in found["hits"][0]["excerpt_html"]


def test_long_messages_are_not_in_memory_all_at_once(person):
    text = "sencha " + 500_000 * "x"
    chat = make(person, "Imported", *[(text, "") for _message in range(40)])
    tracemalloc.start()

    (found,) = search.search(person, "sencha")
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (found.row, len(found.hits), found.more) == (chat, 3, 37)
    assert peak < 15_000_000
