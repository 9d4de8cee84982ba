"""A user's documents are in their export, and go with their account."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.models import Collection, Document, StoredFile
from chat.people_data import data_export, erasure, erasure_report
from tests.conftest import as_user
from tests.web.library.conftest import add_document

pytestmark = pytest.mark.django_db(transaction=True)


def upload(user, collection, name, data):
    file = SimpleUploadedFile(name, data)
    as_user(user).post(f"/library/{collection.pk}/upload/", {"file": file})


@pytest.fixture
def belonging(person, stranger):
    """A document of the person in each kind of collection."""
    places = {
        "mine": Collection.objects.create(name="Mine", owner=person),
        "theirs": Collection.objects.create(name="Theirs", owner=stranger),
        "ours": Collection.objects.create(name="Handbook"),
    }
    places["theirs"].shares.create(user=person, may_edit=True)
    for name, place in places.items():
        add_document(place, f"Green tea, {name}", source=f"{name}.md", owner=person)
    add_document(places["theirs"], "Not mine", source="other.md", owner=stranger)
    upload(person, places["mine"], "file.txt", b"Original bytes")
    return places


def test_the_export_has_own_documents_with_their_files(belonging, person):
    data = b"".join(data_export.archive(person))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}

    listed = {row["source"] for row in json.loads(files["documents.json"])}
    assert listed == {"mine.md", "theirs.md", "ours.md", "file.txt"}
    [original] = [name for name in files if name.endswith("-file.txt")]
    assert files[original] == "Original bytes"
    assert [row["name"] for row in json.loads(files["collections.json"])] == ["Mine"]
    assert "Not mine" not in "".join(files.values())


def test_the_export_has_no_files_of_other_members_in_own_chats(person, stranger):
    files = Collection.objects.create(name="Chat", owner=person, topic="chat.1")
    for name, owner in (("mine.md", person), ("theirs.md", stranger)):
        add_document(files, "Green tea", source=name, owner=owner)

    data = b"".join(data_export.archive(person))

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        listed = json.loads(archive.read("documents.json"))
    assert [row["source"] for row in listed] == ["mine.md"]


def test_erasure_deletes_own_documents_and_keeps_the_installations(belonging, person):
    plan = {line.what: line.count for line in erasure_report.plan(person).stays}
    assert plan["Documents added to the installation's collections"] == 1

    erasure.finish(person)

    left = Document.objects.order_by("source").values_list("source", "owner__username")
    assert [*left] == [("other.md", "eve"), ("ours.md", None)]
    assert not Collection.objects.filter(name="Mine").exists()
    assert not StoredFile.objects.exists()
