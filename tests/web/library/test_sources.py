"""Sources on the page of a collection: added, changed, checked, paused and removed."""

import pytest
from django.contrib.auth.models import Permission

from agents.knowledge import ingestion, sources
from agents.models import AuditEntry, Collection, Document, DocumentSource, McpServer
from tests.conftest import select

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf(tmp_path, settings):
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "tea.md").write_text("Green tea is steeped at 80 °C.")
    settings.SOURCE_FOLDERS = [str(shelf)]
    settings.STORAGES = settings.STORAGES | {
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        }
    }
    return shelf


@pytest.fixture
def handbook():
    return Collection.objects.create(name="Handbook")


@pytest.fixture
def source(handbook, shelf):
    place = {"path": str(shelf)}
    return DocumentSource.objects.create(
        collection=handbook, kind="folder", name="Shelf", place=place
    )


def page(collection):
    return f"/admin/agents/collection/{collection.pk}/documents/"


def form(**values):
    return {"name": "Shelf", "kind": "folder", "interval": "daily"} | values


def test_a_folder_is_added_in_the_console_and_its_files_are_read(admin_client, handbook, shelf):
    assert "source-new-path" in admin_client.get(page(handbook)).text
    sender = {"Referer": f"http://testserver{page(handbook)}"}
    add = f"/library/{handbook.pk}/sources/"
    answer = admin_client.post(add, form(path=str(shelf)), headers=sender)

    assert answer.url == page(handbook)
    assert sources.check_due() == 1
    ingestion.process_waiting()
    assert Document.objects.get().source == "Shelf/tea.md"
    [row] = select(admin_client.get(page(handbook)), "li.source-row")
    assert "Checking" not in row.text()
    assert str(shelf) in row.text()
    entry = AuditEntry.objects.latest("pk")
    assert entry.action == "console.added"
    assert str(shelf) in str(entry.detail)


@pytest.mark.parametrize("path", ["", "/etc", "shelf", "{shelf}/../.."])
def test_a_folder_that_is_not_allowed_is_explained(admin_client, handbook, shelf, path):
    values = form(path=path.format(shelf=shelf))
    answer = admin_client.post(f"/library/{handbook.pk}/sources/", values)

    assert answer.status_code == 422
    assert select(answer, "details[open] .problem")
    assert not DocumentSource.objects.exists()


def test_only_collections_of_the_installation_have_sources(
    admin_client, person_client, administrator, person, handbook, shelf
):
    own = Collection.objects.create(name="Mine", owner=administrator)
    shared = Collection.objects.create(name="Shared")
    shared.shares.create(user=person, may_edit=True)
    for client, collection in [(admin_client, own), (person_client, shared)]:
        add = f"/library/{collection.pk}/sources/"
        assert client.post(add, form(path=str(shelf))).status_code == 404
        assert "source-new-path" not in client.get(f"/library/{collection.pk}/").text


@pytest.mark.parametrize("action", ["check", "pause", "resume", "approve", "remove", ""])
def test_nobody_else_touches_a_source(person_client, person, source, action):
    source.collection.shares.create(user=person, may_edit=True)
    address = f"/library/sources/{source.pk}/{action}/".replace("//", "/")
    assert person_client.post(address, form()).status_code == 404
    assert DocumentSource.objects.filter(enabled=True, next_check_at=None).exists()


def test_a_paused_source_is_not_checked_until_it_is_resumed(admin_client, source):
    admin_client.post(f"/library/sources/{source.pk}/pause/")
    assert admin_client.post(f"/library/sources/{source.pk}/check/").status_code == 404
    assert sources.check_due() == 0
    assert "Paused" in admin_client.get(page(source.collection)).text
    admin_client.post(f"/library/sources/{source.pk}/resume/")
    assert sources.check_due() == 1


def test_lost_documents_are_deleted_after_an_approval(admin_client, source, shelf):
    for number in range(12):
        (shelf / f"{number}.md").write_text(f"Number {number}.")
    sources.check_soon(source)
    sources.check_due()
    for file in shelf.glob("*.md"):
        file.unlink()
    sources.check_soon(source)
    sources.check_due()
    assert (
        "13 of 13 documents are no longer there"
        in admin_client.get(page(source.collection)).text
    )
    approve = f"/library/sources/{source.pk}/approve/"
    for wrong in ({}, {"count": "12"}, {"count": "x"}):  # not what is missing now
        admin_client.post(approve, wrong)
        sources.check_due()
        assert Document.objects.count() == 13
    admin_client.post(approve, {"count": "13"})
    sources.check_due()
    assert not Document.objects.exists()


def test_only_who_manages_servers_has_a_collection_follow_one(
    client, person, admin_client, handbook
):
    server = McpServer.objects.create(name="notes", command="notes-server")
    permission = Permission.objects.get(codename="change_collection")
    person.user_permissions.add(permission)
    client.force_login(person)
    add = f"/library/{handbook.pk}/sources/"

    answer = client.post(add, form(kind="mcp", server=server.pk))

    assert answer.status_code == 422
    assert not DocumentSource.objects.exists()
    assert "notes" not in answer.text
    assert admin_client.post(add, form(kind="mcp", server=server.pk)).status_code == 302


@pytest.mark.parametrize("data", [{}, {"documents": "on"}])
def test_a_removed_source_leaves_its_documents_unless_they_are_to_go(
    admin_client, source, data
):
    sources.check_soon(source)
    sources.check_due()
    admin_client.post(f"/library/sources/{source.pk}/remove/", data)

    assert not DocumentSource.objects.exists()
    assert source.collection.documents.count() == (0 if data else 1)
    assert Document.objects.count() == 1  # it can be restored
    assert AuditEntry.objects.filter(action="console.deleted").exists()


def test_a_saved_secret_is_neither_displayed_nor_sent_elsewhere(admin_client, handbook):
    place = {"url": "https://git.example/docs.git"}
    source = DocumentSource.objects.create(
        collection=handbook, kind="git", name="Docs", place=place, secret="hunter2"
    )
    assert "hunter2" not in admin_client.get(page(handbook)).text
    address = f"/library/sources/{source.pk}/"
    elsewhere = form(kind="git", url="https://evil.example/docs.git")
    answer = admin_client.post(address, elsewhere)
    assert answer.status_code == 422
    source.refresh_from_db()
    assert source.place == place
    admin_client.post(address, form(kind="git", url=place["url"], branch="main"))
    source.refresh_from_db()
    assert (source.place["branch"], source.secret.reveal()) == ("main", "hunter2")
    admin_client.post(address, elsewhere | {"token": "new"})
    source.refresh_from_db()
    assert source.secret.reveal() == "new"
    assert "hunter2" not in str(list(AuditEntry.objects.values_list("detail")))
