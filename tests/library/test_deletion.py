"""Deleted documents are invisible at once, can be restored, and are erased later."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.knowledge import find, scope
from agents.library import deletion
from agents.models import Chunk, Collection, Document
from tests.library.conftest import add_document

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def search(user):
    return find("green tea", scope=scope.for_user(user)).passages


def test_deleted_documents_are_not_found_and_come_back(ada, person, collection, document):
    url = f"/library/{collection.pk}/"
    page = ada.post(f"{url}documents/delete/", {"document": document.pk}, follow=True)
    assert "was deleted." in page.content.decode()
    assert search(person) == []

    [undo] = Collection.objects.filter(deleted_from=collection)
    ada.post(f"/library/undo/{undo.pk}/")

    assert [passage.document for passage in search(person)] == [document.pk]
    assert collection.documents.get() == document


def test_a_deleted_collection_comes_back_whole(ada, eve, person, collection, document):
    ada.post(f"/library/{collection.pk}/delete/")
    assert ada.get(f"/library/documents/{document.pk}/").status_code == 404
    assert search(person) == []
    assert eve.post(f"/library/undo/{collection.pk}/").status_code == 404

    ada.post(f"/library/undo/{collection.pk}/")

    assert ada.get(f"/library/documents/{document.pk}/").status_code == 200


def test_a_restored_document_leaves_a_newer_one_alone(ada, collection, document):
    ada.post(f"/library/{collection.pk}/documents/delete/", {"document": document.pk})
    add_document(collection, "Newer.")

    ada.post(f"/library/undo/{Collection.objects.get(deleted_from=collection).pk}/")

    names = collection.documents.order_by("source").values_list("source", flat=True)
    assert [*names] == ["tea.md", "tea.md (2)"]


def test_what_is_due_is_erased_with_everything_derived(collection, document):
    deletion.delete_collection(collection)
    Collection.objects.update(deleted_at=timezone.now() - timedelta(hours=1))

    deletion.erase_due()

    assert not Collection.objects.filter(pk=collection.pk).exists()
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()


def test_nothing_is_erased_while_it_can_be_restored(collection, document):
    deletion.delete_collection(collection)

    deletion.erase_due()

    assert Document.objects.exists()


def test_the_name_of_a_deleted_collection_is_free(administrator):
    row = Collection.objects.create(name="Handbook")
    deletion.delete_collection(row)
    Collection.objects.create(name="Handbook")

    row.refresh_from_db()
    assert deletion.restore(row).name == "Handbook (restored)"
