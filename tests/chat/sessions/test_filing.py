"""Pinned and archived chats, folders, several chats at once; each user's own."""

import pytest

from chat import messages
from chat.models import ChatSession, Filing, Folder
from chat.sessions.listing import filing, session_list
from chat.sharing import members

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def chats(person):
    return [ChatSession.objects.create(user=person, title=t) for t in ("A", "B", "C")]


@pytest.fixture
def post(person_client):
    def post(url, **values):
        return person_client.post(url, values, headers={"HX-Request": "true"})

    return post


def outline(user):
    sections = session_list.sections(session_list.read(user), {})
    return {section.heading: [row.title for row in section.rows] for section in sections}


def test_a_pinned_chat_is_listed_first_and_only_once(person, chats):
    filing.pin(person, [chats[0].pk])

    assert outline(person) == {"Pinned": ["A"], "Today": ["C", "B"]}

    filing.unpin(person, [chats[0].pk])
    assert outline(person) == {"Today": ["C", "B", "A"]}


def test_members_of_a_shared_chat_file_it_for_themselves(person, stranger, chats):
    members.add_member(chats[0], stranger.username, "read")
    filing.pin(stranger, [chats[0].pk, chats[1].pk])

    assert outline(stranger) == {"Pinned": ["A"]}
    assert "Pinned" not in outline(person)

    members.remove_member(chats[0], stranger.pk)
    assert outline(stranger) == {}


def test_an_archived_chat_leaves_the_list_until_its_user_writes_in_it(person, chats, agent):
    filing.archive(person, [chats[0].pk])
    assert outline(person) == {"Today": ["C", "B"]}
    assert [chat.title for chat in session_list.archived(person)] == ["A"]

    messages.save(chats[0], person, "6 * 7", "a")

    assert outline(person) == {"Today": ["A", "C", "B"]}
    assert session_list.archived(person) == []


def test_the_page_of_an_archived_chat_says_so(person_client, person, chats):
    address = f"/chat/{chats[0].pk}/"
    assert "This chat is archived." not in person_client.get(address).text

    filing.archive(person, [chats[0].pk])

    assert "This chat is archived." in person_client.get(address).text
    person_client.post("/chat/selected/", {"action": "unarchive", "ids": str(chats[0].pk)})
    assert "This chat is archived." not in person_client.get(address).text


def test_a_folder_holds_chats_and_its_deletion_leaves_them(post, person, chats):
    post("/chat/folders/", name=" Tea  launch ", ids=f"{chats[0].pk},{chats[2].pk}")
    folder = Folder.objects.get()
    assert outline(person) == {"Tea launch": ["C", "A"], "Today": ["B"]}

    response = post(f"/chat/folders/{folder.pk}/delete/")

    assert outline(person) == {"Today": ["C", "B", "A"]}
    assert "Its chats are in the list again." in response["HX-Trigger"]


def test_folders_are_renamed_collapsed_and_moved(post, person):
    first, second = (filing.create_folder(person, name) for name in ("One", "Two"))

    post(f"/chat/folders/{second.pk}/", name="Deux")
    post(f"/chat/folders/{second.pk}/", collapsed="1")
    post(f"/chat/folders/{second.pk}/", shift="-1")

    folders = session_list.read(person).folders
    assert folders == [(second.pk, "Deux", True), (first.pk, "One", False)]
    response = post(f"/chat/folders/{second.pk}/", name="One")
    assert "already have a folder" in response["HX-Trigger"]
    assert "Enter a name" in post("/chat/folders/", name="  ")["HX-Trigger"]


def test_chats_cannot_be_moved_into_another_users_folder(post, stranger, chats):
    theirs = filing.create_folder(stranger, "Theirs")

    response = post("/chat/selected/", action="move", ids=str(chats[0].pk), folder=theirs.pk)

    assert response.status_code == 404
    assert not Filing.objects.filter(folder=theirs).exists()


def test_invisible_chats_are_ignored(post, person, stranger, chats):
    other = ChatSession.objects.create(user=stranger, title="Other")

    post("/chat/selected/", action="pin", ids=f"{chats[0].pk},{other.pk},x,")

    assert [filed.session_id for filed in Filing.objects.all()] == [chats[0].pk]


def test_more_than_a_hundred_chats_are_listed_page_by_page(person_client, person):
    rows = [ChatSession(user=person, title=f"Chat {n}") for n in range(250)]
    ChatSession.objects.bulk_create(rows)

    seen, cursor = set(), session_list.read(person).cursor
    seen |= {row.pk for row in session_list.read(person).recent}
    while cursor:
        page = session_list.older(person, cursor)
        assert not seen & {row.pk for row in page.recent}
        seen |= {row.pk for row in page.recent}
        cursor = page.cursor

    assert len(seen) == 250
    for cursor in ("nonsense", "2026-13-40T00:00:00,1", "2026-11-01T00:00:00,1"):
        assert person_client.get(f"/chat/sessions/?before={cursor}").status_code == 200
