"""People are suggested in the share dialog, if the installation allows it."""

import pytest

from agents.accounts.models import Profile
from agents.web import people_suggestions as suggestions
from chat.models import ChatSession
from chat.sharing import members, people_suggestions
from tests.conftest import as_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat(person, settings, django_user_model):
    settings.SUGGEST_USERS = True
    people = django_user_model.objects
    people.create_user("grace", first_name="Grace", last_name="Hopper")
    people.create_user("gregor", is_active=False)
    people.create_user("t-yamada", first_name="太郎", last_name="山田")
    return ChatSession.objects.create(user=person, title="Sums")


def names(chat, typed):
    return [one.username for one in people_suggestions.find_people(chat, typed)]


def suggest(user, chat, typed):
    client = as_user(user)
    return client.get(f"/chat/{chat.pk}/people/suggestions/", {"name": typed})


def test_a_name_is_found_by_how_it_starts(chat):
    assert names(chat, "gr") == names(chat, "HOP") == names(chat, "Grace Hopper") == ["grace"]
    assert names(chat, "山") == ["t-yamada"]
    assert names(chat, "opper") == []


def test_a_display_name_is_found_and_visible(chat, person, django_user_model):
    anna = django_user_model.objects.create_user("x17")
    Profile.objects.create(user=anna, display_name="Dr. Anna Berg")

    assert names(chat, "dr") == names(chat, "ber") == ["x17"]
    assert "Dr. Anna Berg" in suggest(person, chat, "anna").text


def test_one_letter_is_too_short_and_a_percent_sign_is_no_wildcard(chat):
    assert names(chat, "g") == names(chat, " ") == names(chat, "%%") == []


def test_members_the_owner_and_disabled_accounts_are_not_suggested(chat):
    members.add_member(chat, "grace", "read")

    assert names(chat, "gr") == names(chat, "ada") == []


def test_the_number_of_suggestions_is_limited(chat, django_user_model):
    for number in range(suggestions.MAX_PEOPLE + 3):
        django_user_model.objects.create_user(f"zoe{number:02}")

    assert len(names(chat, "zoe")) == suggestions.MAX_PEOPLE


def test_only_the_owner_gets_suggestions(chat, person, stranger):
    members.add_member(chat, "eve", "write")

    page = suggest(person, chat, "gr").text

    assert 'data-name="grace"' in page
    assert "Grace Hopper" in page
    assert suggest(stranger, chat, "gr").status_code == 404


def test_without_the_setting_there_are_no_suggestions(chat, person, settings):
    settings.SUGGEST_USERS = False

    assert suggest(person, chat, "gr").status_code == 404


def test_suggestions_are_rate_limited(chat, person, monkeypatch):
    monkeypatch.setattr(suggestions, "MAX_REQUESTS", 2)

    answers = [suggest(person, chat, "gr").status_code for _time in range(3)]

    assert answers == [200, 200, 429]
