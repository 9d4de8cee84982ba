"""The profile page: what users say about themselves, and how pages look to them."""

import json

import pytest
from django.urls import reverse

from agents.access.names import display_name
from agents.accounts.models import Profile
from agents.accounts.users import profiles
from chat.models import ChatSession
from chat.people_data import data_export
from chat.sessions.listing import search, session_list
from chat.sharing import members

pytestmark = pytest.mark.django_db
FORM = {
    "display_name": "Ada Lovelace",
    "language": "ja",
    "time_zone": "Asia/Tokyo",
    "date_format": "iso",
    "clock": "12",
}


@pytest.fixture
def page(person_client):
    return lambda **form: person_client.post(reverse("people:profile"), FORM | form)


def test_a_profile_is_saved_and_shown(page, person, person_client):
    response = page()
    shown = person_client.get(response.url).text

    assert (response.status_code, 'value="Ada Lovelace"' in shown) == (302, True)
    assert 'lang="ja"' in shown
    profile = Profile.objects.get(user=person)
    assert (profile.time_zone, profile.clock) == ("Asia/Tokyo", "12")
    assert profile.has_instructions
    assert not profile.has_single_keys


@pytest.mark.parametrize("name", ["eve", "Eve", "еve", "evе", "Ｅve"])
def test_names_of_others_and_lookalikes_are_rejected(name, page, person, django_user_model):
    django_user_model.objects.create_user("eve")
    response = page(display_name=name)

    assert response.status_code == 422
    assert "Another user has this name" in response.text
    assert not Profile.objects.exists()


def test_a_display_name_of_another_user_is_rejected(page, stranger):
    profiles.save_setting(stranger, display_name="Ada L", skeleton="ada l")

    assert page(display_name="Аda L").status_code == 422


def test_a_name_with_expanding_characters_is_compared_normalized(page, stranger):
    name = "ﷺ" * 60
    assert page(display_name=name).status_code == 302
    assert profiles.is_taken(name, stranger)
    assert not profiles.is_taken("ﷺ" * 59, stranger)


def test_a_display_name_is_one_visible_line(page, person):
    page(display_name="  Ada\u202e \n\u200bLovelace ")

    person.refresh_from_db()
    assert display_name(person) == "Ada Lovelace"


def test_without_a_display_name_the_username_is_shown(page, person):
    page(display_name="")

    person.refresh_from_db()
    assert display_name(person) == person.get_username()


@pytest.mark.parametrize(
    ("field", "value"),
    [("time_zone", "Mars/Olympus"), ("clock", "13")],
)
def test_an_invalid_value_is_rejected_and_keeps_the_input(field, value, page):
    response = page(**{field: value})

    assert response.status_code == 422
    assert 'value="Ada Lovelace"' in response.text
    assert "<span>Ada Lovelace</span>" not in response.text  # in the bar: not saved
    assert not Profile.objects.exists()


def test_the_language_menu_changes_the_profile(page, person, person_client):
    page()
    person_client.post(reverse("set_language"), {"language": "en", "next": "/"})

    assert 'lang="en"' in person_client.get(reverse("people:profile")).text
    assert Profile.objects.get(user=person).language == "en"


def test_members_of_a_chat_see_the_display_name(page, person, stranger):
    page()
    chat = ChatSession.objects.create(user=person, title="Tea")
    members.add_member(chat, stranger.get_username(), "write")

    assert [row.whose for row in session_list.read(stranger).recent] == ["Ada Lovelace"]
    assert [each.row.whose for each in search.search(stranger, "Tea")] == ["Ada Lovelace"]


def test_a_data_export_has_the_profile(page, person):
    page()
    person.refresh_from_db()
    files = {name: "".join(map(str, pieces)) for name, pieces in data_export.files(person)}

    profile = json.loads(files["account.json"])["profile"]
    assert profile["display_name"] == "Ada Lovelace"
