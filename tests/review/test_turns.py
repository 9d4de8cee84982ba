"""A run's page lists the turns of its chat, and compares versions with a click."""

import pytest
from django.contrib.auth.models import Permission

from agents.access import masking
from agents.models import Run
from agents.review.run_details import turns
from chat.sharing import members
from tests.chat.conftest import chat  # noqa: F401
from tests.chat.sessions.test_branches import post


@pytest.fixture
def talk(chat):  # noqa: F811
    """A question with two versions, and a turn after the first one."""
    first = post(chat, "First")
    second = post(chat, "Second", first)
    third = post(chat, "Third", second)
    other = post(chat, "Other", first)
    return first, second, third, other


def rows(run, user):
    return [
        (turn.run.query, turn.depth, f"{turn.number}/{turn.versions}")
        for turn in turns.turns_around(run, user, {})
    ]


def test_the_turns_are_a_tree_in_reading_order(talk):
    first, second, *_ = talk

    assert rows(second.run, first.author) == [
        ("First", 0, "1/1"),
        ("Second", 1, "1/2"),
        ("Third", 1, "1/1"),
        ("Other", 1, "2/2"),
    ]


def test_a_single_run_has_no_tree(chat):  # noqa: F811
    assert rows(post(chat, "Alone").run, chat.user) == []
    outside = Run.objects.create(user=chat.user, topic="elsewhere", query="?")
    assert rows(outside, chat.user) == []


def test_turns_after_a_deleted_run_follow_what_is_left(talk):
    first, second, third, _ = talk
    second.run.delete()

    assert rows(third.run, first.author) == [
        ("First", 0, "1/1"),
        ("Third", 1, "1/2"),
        ("Other", 1, "2/2"),
    ]


def test_long_conversations_are_truncated_around_the_run(chat, monkeypatch):  # noqa: F811
    monkeypatch.setattr(turns, "MAX_TURNS", 4)
    last = None
    for at in range(10):
        last = post(chat, str(at), last)

    assert [query for query, *_ in rows(last.run, chat.user)] == ["6", "7", "8", "9"]


def test_the_page_links_versions_and_their_comparison(client, talk):
    first, second, _, other = talk
    client.force_login(first.author)

    page = client.get(f"/traces/{second.run_id}/").text

    assert f'href="/traces/{second.run_id}/compare/{other.run_id}/"' in page
    assert f'href="/traces/{first.run_id}/"' in page
    assert "version 2 of 2" in page
    assert client.get(f"/traces/{second.run_id}/compare/{other.run_id}/").status_code == 200


def test_another_users_run_shows_only_visible_turns(talk, stranger):
    first, second, *_ = talk
    assert rows(second.run, stranger) == []
    members.add_member(first.session, stranger.username, "read")
    member = type(stranger).objects.get(pk=stranger.pk)  # topics are read once a request
    assert len(rows(second.run, member)) == 4


def test_each_question_is_masked_unless_its_own_run_was_unmasked(talk, stranger):
    first, second, *_ = talk
    Run.objects.filter(pk__in=[first.run_id, second.run_id]).update(
        query="Write to ada@example.com"
    )
    rights = Permission.objects.filter(codename__in=["review_runs", "see_personal_data"])
    stranger.user_permissions.add(*rights)
    unmasked = {masking.UNMASKED_SESSION_KEY: [second.run_id]}

    before, here, *_ = turns.turns_around(second.run, stranger, unmasked)

    assert "ada@example.com" not in before.run.query
    assert "ada@example.com" in here.run.query
