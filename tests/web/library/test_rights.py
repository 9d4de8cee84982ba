"""Who can search a collection can open its documents; what others share waits for consent."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agents.catalog.tools.search_library import ScopedLibrary
from agents.knowledge import find, scope
from agents.metering.caches import rights as cached_rights
from agents.models import AuditEntry, Collection, Document, Run
from agents.models.catalog.rights import Role
from agents.tools.search import SearchRequest
from agents.web.library import deletion, sharing
from chat.models import ChatSession
from chat.projects import membership
from tests.conftest import as_user
from tests.web.library.conftest import add_document

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


class Rights(TestCase):
    """Random access rights: a search finds what opens, but for what wasn't accepted."""

    @given(
        st.lists(
            st.fixed_dictionaries(
                {
                    "owner": st.sampled_from(["ada", "eve", None]),
                    "is_open": st.booleans(),
                    "group": st.booleans(),
                    "share": st.booleans(),
                    "accepted": st.booleans(),
                    "deleted": st.booleans(),
                }
            ),
            min_size=1,
            max_size=4,
        ),
        st.booleans(),
    )
    def test_what_is_found_can_be_opened_and_was_accepted(self, rights, is_member):
        from django.contrib.auth import get_user_model

        people = {name: get_user_model().objects.create_user(name) for name in ("ada", "eve")}
        group = Group.objects.create(name="tea drinkers")
        if is_member:
            people["ada"].groups.add(group)
        documents = []
        for number, right in enumerate(rights):
            row = Collection.objects.create(
                name=f"C{number}", owner=people.get(right["owner"]), is_open=right["is_open"]
            )
            if right["group"]:
                row.groups.add(group)
            if right["share"]:
                row.shares.create(user=people["ada"])
            if right["accepted"]:
                row.acceptances.create(user=people["ada"])
            documents.append(add_document(row, f"Green tea {number}"))
            if right["deleted"]:
                deletion.delete_collection(row, None)
        client = as_user(people["ada"])

        passages = find("green tea", 50, scope=scope.for_user(people["ada"])).passages
        found = {passage.document for passage in passages}
        opened = {
            each.pk
            for each in documents
            if client.get(f"/library/documents/{each.pk}/").status_code == 200
        }

        waiting = {
            document.pk
            for document, right in zip(documents, rights, strict=True)
            if right["owner"] == "eve" and not right["is_open"] and not right["accepted"]
        }
        assert found == opened - waiting


def test_an_administrator_does_not_see_personal_collections(
    collection, document, administrator
):
    client = as_user(administrator)

    assert client.get(f"/library/{collection.pk}/").status_code == 404
    assert client.get(f"/library/documents/{document.pk}/").status_code == 404
    for name in ("collection", "document", "chunk"):
        assert b"Tea" not in client.get(f"/admin/agents/{name}/").content


def test_administrators_manage_the_installations_collections(administrator, eve):
    row = Collection.objects.create(name="Handbook")

    assert as_user(administrator).get(f"/library/{row.pk}/").status_code == 200
    assert eve.get(f"/library/{row.pk}/").status_code == 404


def test_only_administrators_create_collections_of_the_installation(ada, administrator):
    about = {"name": "Handbook", "owner": "installation"}

    assert ada.post("/library/new/", about).status_code == 404
    assert as_user(administrator).post("/library/new/", about).status_code == 302
    assert Collection.objects.get(name="Handbook").owner is None


def test_sharing_by_name_and_group_gives_and_takes_access(ada, eve, collection, stranger):
    url = f"/library/{collection.pk}/"
    ada.post(f"{url}access/", {"name": "eve", "right": "read"})
    assert eve.get(url).status_code == 200
    assert eve.post(f"{url}documents/delete/").status_code == 403

    ada.post(f"{url}access/", {"name": "eve", "right": "write"})
    assert eve.post(f"{url}documents/delete/").status_code == 302

    ada.post(f"{url}access/{stranger.pk}/remove/")
    assert eve.get(url).status_code == 404
    assert AuditEntry.objects.filter(action="collection.shared").count() == 3


def test_a_user_shares_with_their_own_groups_only(ada, person, collection):
    mine, other = (Group.objects.create(name=name) for name in ("mine", "other"))
    person.groups.add(mine)

    ada.post(f"/library/{collection.pk}/access/groups/", {"groups": [mine.pk, other.pk]})

    assert [group.name for group in collection.groups.all()] == ["mine"]


def test_only_administrators_share_with_everyone(ada, person, collection):
    url = f"/library/{collection.pk}/access/groups/"
    assert "Only administrators" in ada.post(url, {"is_open": "on"}).text

    person.user_permissions.add(Permission.objects.get(codename="change_collection"))
    ada.post(url, {"is_open": "on"})

    collection.refresh_from_db()
    assert collection.is_open


def test_an_unknown_name_gets_a_sentence(ada, collection):
    answer = ada.post(f"/library/{collection.pk}/access/", {"name": "bob", "right": "read"})

    assert answer.status_code == 422
    assert "No user is named “bob”." in answer.text


def test_search_is_limited_to_the_chosen_collection(ada, eve, collection, document, stranger):
    other = Collection.objects.create(name="Other", owner=stranger)
    add_document(other, "Green tea of somebody else.")

    page = ada.get("/library/search/", {"q": "green tea"}).text
    assert f"/library/documents/{document.pk}/" in page
    assert "somebody else" not in page
    narrowed = eve.get("/library/search/", {"q": "green tea", "collection": collection.pk})
    assert "80 °C" not in narrowed.text


def test_documents_of_others_are_left_out_of_a_deletion(ada, collection, stranger):
    other = add_document(Collection.objects.create(name="Other", owner=stranger))

    ada.post(f"/library/{collection.pk}/documents/delete/", {"document": [other.pk]})

    assert Document.objects.get(pk=other.pk).collection.name == "Other"


@pytest.mark.parametrize(("right", "status"), [("read", 403), ("write", 302), ("none", 404)])
def test_members_of_a_project_open_its_documents_and_editors_add_to_them(
    ada, eve, person, right, status
):
    project = membership.create(person, "Launch")
    if right != "none":
        membership.add(project, "eve", right, person)
    url = f"/library/{membership.collection_of(project).pk}/"
    file = SimpleUploadedFile("tea.txt", b"Green tea is steeped at 80 degrees.")

    assert url in ada.get(f"/projects/{project.pk}/").text
    assert ada.get(url).context["project"] == project
    assert eve.get(url).status_code == (404 if right == "none" else 200)
    assert eve.post(f"{url}upload/", {"file": file}).status_code == status
    assert Document.objects.count() == (right == "write")


def test_documents_of_a_project_are_searched_on_their_page_and_not_in_the_library(ada, person):
    documents = membership.collection_of(membership.create(person, "Launch"))
    document = add_document(documents)

    everywhere = ada.get("/library/search/", {"q": "green tea"}).context["found"]
    within = {"q": "green tea", "collection": documents.pk}
    found = ada.get("/library/search/", within).context["found"]

    assert not everywhere.hits
    assert [hit["passage"].document for hit in found.hits] == [document.pk]


def test_files_of_a_chat_have_no_page_of_a_collection(ada, person):
    chat = ChatSession.objects.create(user=person)
    files = Collection.objects.create(name="Chat", owner=person, topic=chat.topic)

    assert ada.get(f"/library/{files.pk}/").status_code == 404


def searched_by(user):
    return scope.for_run(user.pk, "chat.1", None).collections


def test_a_shared_collection_is_searched_only_after_its_receiver_accepted_it(
    ada, eve, collection, document, stranger
):
    url = f"/library/{collection.pk}/"
    ada.post(f"{url}access/", {"name": "eve", "right": "read"})

    assert [row.collection for row in eve.get("/library/").context["rows"]["pending"]] == [
        collection
    ]
    assert eve.get(f"/library/documents/{document.pk}/").status_code == 200
    assert not searched_by(stranger)
    assert not eve.get("/library/search/", {"q": "green tea"}).context["found"].hits
    rights = cached_rights.fingerprint(stranger.pk)

    eve.post(f"{url}accept/", {"is_accepted": "yes"})
    assert searched_by(stranger) == {collection.pk}
    assert cached_rights.fingerprint(stranger.pk) != rights
    assert eve.get("/library/search/", {"q": "green tea"}).context["found"].hits

    eve.post(f"{url}accept/", {"is_accepted": "no"})
    assert not searched_by(stranger)
    assert eve.get(url).context["row"].decision == "dismissed"


def test_access_that_ends_takes_the_acceptance_with_it(ada, eve, collection, stranger):
    url = f"/library/{collection.pk}/"
    for _ in range(2):
        ada.post(f"{url}access/", {"name": "eve", "right": "read"})
        assert not searched_by(stranger)
        eve.post(f"{url}accept/", {"is_accepted": "yes"})
        assert searched_by(stranger) == {collection.pk}
        ada.post(f"{url}access/{stranger.pk}/remove/")


def test_members_of_a_group_accept_for_themselves_unless_an_administrator_shares(
    ada, person, collection, stranger
):
    team = Group.objects.create(name="team")
    team.user_set.add(person, stranger)
    url = f"/library/{collection.pk}/access/groups/"

    ada.post(url, {"groups": [team.pk]})
    assert not searched_by(stranger)

    ada.post(url)
    person.user_permissions.add(Permission.objects.get(codename="change_collection"))
    ada.post(url, {"groups": [team.pk]})
    assert searched_by(stranger) == {collection.pk}


def test_a_member_removes_from_their_search_what_an_administrator_shares_with_a_group(
    administrator, eve, stranger
):
    team = Group.objects.create(name="team")
    team.user_set.add(administrator, stranger)
    row = Collection.objects.create(name="Handbook", owner=administrator)
    sharing.set_readers(row, administrator, [team.pk], is_open=False)
    assert searched_by(stranger) == {row.pk}

    eve.post(f"/library/{row.pk}/accept/", {"is_accepted": "no"})
    assert not searched_by(stranger)
    assert [each.decision for each in eve.get("/library/").context["rows"]["dismissed"]]

    eve.post(f"/library/{row.pk}/accept/", {"is_accepted": "yes"})
    assert searched_by(stranger) == {row.pk}


def test_a_member_decides_again_when_a_group_loses_access_and_gets_it_back(
    ada, eve, person, collection, stranger
):
    team = Group.objects.create(name="team")
    team.user_set.add(person, stranger)
    url = f"/library/{collection.pk}/"
    ada.post(f"{url}access/groups/", {"groups": [team.pk]})
    eve.post(f"{url}accept/", {"is_accepted": "yes"})
    assert searched_by(stranger) == {collection.pk}

    ada.post(f"{url}access/groups/")
    ada.post(f"{url}access/groups/", {"groups": [team.pk]})

    assert not searched_by(stranger)


def test_what_an_administrator_shares_by_name_is_searched_at_once(administrator, stranger):
    row = Collection.objects.create(name="Handbook", owner=administrator)

    sharing.add_person(row, administrator, "eve", "read")

    assert searched_by(stranger) == {row.pk}


def test_a_role_is_no_group_to_share_with(ada, person, collection, stranger):
    everybody, _ = Group.objects.get_or_create(name=Role.PERSON.value)
    everybody.user_set.add(person, stranger)
    url = f"/library/{collection.pk}/access/"

    assert not ada.get(url).context["panel"].groups
    ada.post(f"{url}groups/", {"groups": [everybody.pk]})

    assert not collection.groups.exists()


def test_a_source_says_who_shared_its_collection(ada, eve, collection, document, stranger):
    library = ScopedLibrary(lambda: scope.for_collection(collection.pk))
    passage = library._search(SearchRequest(query="green tea")).passages[0]
    now = timezone.now()
    step = {"number": 1, "kind": "tool", "action": "search", "status": "done"}
    pages = {}
    for user, client in ((collection.owner, ada), (stranger, eve)):
        run = Run.objects.create(
            user=user, topic="t", query="Tea?", answer="80 °C [1].", status="completed"
        )
        run.steps.create(
            **step,
            first_seq=1,
            started_at=now,
            ended_at=now,
            observation=f"[1] tea.md\n{passage.text}",
            sources=[passage.to_dict() | {"number": 1}],
        )
        pages[user] = client.get(f"/traces/{run.pk}/").text

    assert "Shared by ada" in pages[stranger]
    assert "Shared by" not in pages[collection.owner]
