"""Deleted documents are invisible at once, can be restored, and are erased later."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.access import recently_deleted
from agents.knowledge import find, scope
from agents.models import Chunk, Collection, Document
from agents.web.library import deletion
from tests.web.library.conftest import add_document

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def restore(client, key):
    return client.post(f"{reverse('people:restore_deleted')}?items={key}")


def search(user):
    return find("green tea", scope=scope.for_user(user)).passages


def test_deleted_documents_are_not_found_and_come_back(ada, person, collection, document):
    url = f"/library/{collection.pk}/"
    page = ada.post(f"{url}documents/delete/", {"document": document.pk}, follow=True)
    assert "was deleted." in page.text
    assert search(person) == []

    [removal] = Collection.objects.filter(deleted_from=collection)
    restore(ada, f"document:{removal.pk}")

    assert [passage.document for passage in search(person)] == [document.pk]
    assert collection.documents.get() == document


def test_a_deleted_collection_comes_back_whole(ada, eve, person, collection, document):
    ada.post(f"/library/{collection.pk}/delete/")
    assert ada.get(f"/library/documents/{document.pk}/").status_code == 404
    assert search(person) == []
    assert restore(eve, f"collection:{collection.pk}").status_code == 404

    restore(ada, f"collection:{collection.pk}")

    assert ada.get(f"/library/documents/{document.pk}/").status_code == 200


def test_a_restored_document_leaves_a_newer_one_alone(ada, collection, document):
    ada.post(f"/library/{collection.pk}/documents/delete/", {"document": document.pk})
    add_document(collection, "Newer.")

    restore(ada, f"document:{Collection.objects.get(deleted_from=collection).pk}")

    names = collection.documents.order_by("source").values_list("source", flat=True)
    assert [*names] == ["tea.md", "tea.md (2)"]


def test_what_is_due_is_erased_with_everything_derived(collection, document):
    deletion.delete_collection(collection, None)
    Collection.objects.update(deleted_at=timezone.now() - timedelta(days=31))

    recently_deleted.erase_due()

    assert not Collection.objects.filter(pk=collection.pk).exists()
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()


def test_nothing_is_erased_while_it_can_be_restored(collection, document):
    deletion.delete_collection(collection, None)

    recently_deleted.erase_due()

    assert Document.objects.exists()


def test_the_name_of_a_deleted_collection_is_free(administrator):
    row = Collection.objects.create(name="Handbook")
    deletion.delete_collection(row, administrator)
    Collection.objects.create(name="Handbook")

    recently_deleted.restore(administrator, f"collection:{row.pk}")

    row.refresh_from_db()
    assert row.name == "Handbook (restored)"


def test_who_can_edit_a_collection_restores_its_documents(
    ada, eve, stranger, collection, document
):
    ada.post(f"/library/{collection.pk}/documents/delete/", {"document": document.pk})
    key = f"document:{Collection.objects.get(deleted_from=collection).pk}"
    share = collection.shares.create(user=stranger)
    assert restore(eve, key).status_code == 404

    share.may_edit = True
    share.save()

    assert restore(eve, key).status_code == 302
    assert collection.documents.get() == document
