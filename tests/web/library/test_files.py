"""Uploads are saved under harmless names, and originals are served so that nothing runs."""

import errno
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections

from agents.knowledge.files import store
from agents.models import Collection, Document, StoredFile
from agents.web.library import uploads
from agents.web.library.uploads import Upload
from tests.pictures import png

pytestmark = pytest.mark.django_db


def upload(client, collection, name="tea.txt", data=b"Green tea", **more):
    file = SimpleUploadedFile(name, data)
    url = f"/library/{collection.pk}/upload/"
    return client.post(url, {"file": file, **more}, headers={"X-Upload": "1"})


def test_an_upload_becomes_a_document(ada, person, collection):
    answer = upload(ada, collection, path="teas/green/tea.txt")

    document = collection.documents.get()
    assert f'id="document-{document.pk}"' in answer.text
    assert (document.source, document.owner) == ("teas/green/tea.txt", person)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\Users\\ada\\tea.txt", "C:/Users/ada/tea.txt"),
        ("/abs/tea.txt", "abs/tea.txt"),
        ("", "tea.txt"),
        ("teas/invoice\u202efdp.exe", "teas/invoice fdp.exe"),
    ],
)
def test_a_path_leads_nowhere(path, name):
    assert Upload(file=SimpleUploadedFile("tea.txt", b""), path=path).name == name


def test_hidden_files_of_a_folder_are_left_out(ada, collection):
    assert upload(ada, collection, path="teas/.DS_Store").status_code == 422
    assert not collection.documents.exists()


def test_an_empty_file_gets_a_sentence_and_leaves_nothing(ada, collection):
    answer = upload(ada, collection, data=b"")

    assert answer.status_code == 422
    assert "tea.txt" in answer.text or "empty" in answer.text
    assert not StoredFile.objects.exists()


def test_a_reader_cannot_upload(eve, stranger, collection):
    collection.shares.create(user=stranger)

    assert upload(eve, collection).status_code == 403
    assert not Document.objects.exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("page.html", b"<!doctype html><script>alert(1)</script>"),
        ("picture.svg", b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'),
        ("paper.pdf", b"%PDF-1.4\n%%EOF"),
    ],
)
def test_pages_and_drawings_are_only_downloaded(ada, collection, name, data):
    upload(ada, collection, name, data)

    answer = ada.get(f"/library/documents/{collection.documents.get().pk}/file/")

    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]


def test_an_image_has_its_size_before_it_is_loaded(ada, collection):
    upload(ada, collection, "kettle.png", png(30, 20))
    document = collection.documents.get()
    url = f"/library/documents/{document.pk}/"

    assert 'width="30" height="20"' in ada.get(url).text
    storages["files"].delete(document.file.path)
    assert ada.get(url).status_code == 200  # its text is still there


def test_a_part_of_a_file_can_be_asked_for(ada, collection):
    upload(ada, collection)
    url = f"/library/documents/{collection.documents.get().pk}/file/"

    answer = ada.get(url, headers={"Range": "bytes=6-8"})

    assert (answer.status_code, answer.content) == (206, b"tea")
    assert ada.get(url, headers={"If-None-Match": answer["ETag"]}).status_code == 304


def test_access_to_an_original_ends_with_access_to_the_collection(ada, eve, stranger):
    row = Collection.objects.create(name="Open", is_open=True)
    row.shares.create(user=stranger, may_edit=True)
    upload(eve, row)
    url = f"/library/documents/{row.documents.get().pk}/file/"
    assert ada.get(url).status_code == 200

    Collection.objects.update(is_open=False)

    assert ada.get(url).status_code == 404


def test_an_administrator_has_documents_read_again(administrator, ada, collection):
    from tests.conftest import as_user

    root = as_user(administrator)
    ours = Collection.objects.create(name="Handbook")
    upload(root, ours)
    upload(ada, collection)
    Document.objects.update(status="ready")
    chosen = {"_selected_action": [*Document.objects.values_list("pk", flat=True)]}

    answer = root.post(
        "/admin/agents/document/", {"action": "read_again", **chosen}, follow=True
    )

    assert "1 document is being read again." in answer.text
    assert ours.documents.get().status == "queued"
    assert collection.documents.get().status == "ready"  # a user's own is left out


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_parallel_uploads_do_not_exceed_the_quota(person, collection, settings):
    settings.USER_FILES_MB = 1

    def upload(number):
        file = SimpleUploadedFile(f"{number}.txt", bytes([65 + number]) * 300_000)
        try:
            return uploads.add_files(collection, person, [uploads.Upload(file=file)])
        except uploads.UploadRejected:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as tabs:
        added = list(tabs.map(upload, range(8)))

    assert len([each for each in added if each]) == 3


def test_a_full_disk_gets_a_sentence_and_leaves_nothing(ada, collection, monkeypatch):
    def write(*about):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", write)
    answer = upload(ada, collection)

    assert answer.status_code == 422
    assert "disk is full" in answer.text
    assert not Document.objects.exists()


def test_a_number_too_large_for_the_database_is_no_error(ada, collection, document):
    far = "9" * 5_000
    ada.post(f"/library/{collection.pk}/documents/delete/", {"document": [far, "9" * 30]})
    ada.post(f"/library/{collection.pk}/access/groups/", {"groups": [far, "9" * 30]})
    for query in ({"at": far}, {"chunk": far}, {"part": "9" * 30}):
        assert ada.get(f"/library/documents/{document.pk}/", query).status_code == 200
    for wanted in (far, "9" * 30):
        answer = ada.get("/library/search/", {"q": "tea", "collection": wanted})
        assert answer.status_code == 200
