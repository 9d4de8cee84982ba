"""Who can search a collection can open its documents, and nobody else can."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agents.knowledge import find, scope
from agents.library import deletion
from agents.models import AuditEntry, Collection, Document
from chat.models import ChatSession
from chat.projects import membership
from tests.library.conftest import add_document, client_of

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


class Rights(TestCase):
    """Random access rights: a search finds exactly what opens."""

    @given(
        st.lists(
            st.fixed_dictionaries(
                {
                    "owner": st.sampled_from(["ada", "eve", None]),
                    "is_open": st.booleans(),
                    "group": st.booleans(),
                    "share": st.booleans(),
                    "deleted": st.booleans(),
                }
            ),
            min_size=1,
            max_size=4,
        ),
        st.booleans(),
    )
    def test_what_is_found_can_be_opened_and_nothing_else(self, rights, is_member):
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
            documents.append(add_document(row, f"Green tea {number}"))
            if right["deleted"]:
                deletion.delete_collection(row)
        client = client_of(people["ada"])

        passages = find("green tea", 50, scope=scope.for_user(people["ada"])).passages
        found = {passage.document_id for passage in passages}
        opened = {
            each.pk
            for each in documents
            if client.get(f"/library/documents/{each.pk}/").status_code == 200
        }

        assert found == opened


def test_an_administrator_does_not_see_personal_collections(
    collection, document, administrator
):
    client = client_of(administrator)

    assert client.get(f"/library/{collection.pk}/").status_code == 404
    assert client.get(f"/library/documents/{document.pk}/").status_code == 404
    for name in ("collection", "document", "chunk"):
        assert b"Tea" not in client.get(f"/admin/agents/{name}/").content


def test_administrators_manage_the_installations_collections(administrator, eve):
    row = Collection.objects.create(name="Handbook")

    assert client_of(administrator).get(f"/library/{row.pk}/").status_code == 200
    assert eve.get(f"/library/{row.pk}/").status_code == 404


def test_only_administrators_create_collections_of_the_installation(ada, administrator):
    about = {"name": "Handbook", "owner": "installation"}

    assert ada.post("/library/new/", about).status_code == 404
    assert client_of(administrator).post("/library/new/", about).status_code == 302
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
    assert "Only administrators" in ada.post(url, {"is_open": "on"}).content.decode()

    person.user_permissions.add(Permission.objects.get(codename="change_collection"))
    ada.post(url, {"is_open": "on"})

    collection.refresh_from_db()
    assert collection.is_open


def test_an_unknown_name_gets_a_sentence(ada, collection):
    answer = ada.post(f"/library/{collection.pk}/access/", {"name": "bob", "right": "read"})

    assert answer.status_code == 422
    assert "No user is named “bob”." in answer.content.decode()


def test_search_is_limited_to_the_chosen_collection(ada, eve, collection, document, stranger):
    other = Collection.objects.create(name="Other", owner=stranger)
    add_document(other, "Green tea of somebody else.")

    page = ada.get("/library/search/", {"q": "green tea"}).content.decode()
    assert f"/library/documents/{document.pk}/" in page
    assert "somebody else" not in page
    narrowed = eve.get("/library/search/", {"q": "green tea", "collection": collection.pk})
    assert "80 °C" not in narrowed.content.decode()


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

    assert url in ada.get(f"/projects/{project.pk}/").content.decode()
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
    assert [hit.passage.document_id for hit in found.hits] == [document.pk]


def test_files_of_a_chat_have_no_page_of_a_collection(ada, person):
    chat = ChatSession.objects.create(user=person)
    files = Collection.objects.create(name="Chat", owner=person, topic=chat.topic)

    assert ada.get(f"/library/{files.pk}/").status_code == 404
