"""Deletes collections and documents: invisible at once, restorable for a while, then erased.

Documents that are deleted together move to a deleted collection of their own, so that a search
can't find them and their names are free again. The periodic check of any process erases what is
due, also after a crash.
"""

import logging
from collections.abc import Container, Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.db.periodic import periodic
from agents.knowledge import ingestion
from agents.models import Collection, Document

from . import events

logger = logging.getLogger(__name__)

UNDO_LIMIT = timedelta(minutes=10)
ERASE_AFTER = timedelta(minutes=11)  # later, so that nothing half erased comes back
POLL_SECONDS = 60.0


def delete_collection(collection: Collection) -> None:
    """Hide a collection with all its documents."""
    Collection.objects.filter(pk=collection.pk).update(deleted_at=timezone.now())
    events.access_changed(collection)


def delete_documents(collection: Collection, documents: Iterable[Document]) -> Collection:
    """Move documents to a deleted collection, and return that."""
    found = list(documents)
    for document in found:
        if document.is_pending:
            ingestion.cancel(document)
    with transaction.atomic():
        removal = Collection.objects.create(
            name=collection.name,
            owner_id=collection.owner_id,
            deleted_at=timezone.now(),
            deleted_from=collection,
        )
        Document.objects.filter(pk__in=[document.pk for document in found]).update(
            collection=removal
        )
        events.documents_changed(collection)
    return removal


def find_deleted(pk: int, user: User) -> Collection | None:
    """Return what this user deleted a moment ago, or could have."""
    recent = Collection.objects.filter(deleted_at__gte=timezone.now() - UNDO_LIMIT)
    removal = recent.filter(pk=pk).select_related("deleted_from").first()
    if removal is None:
        return None
    if (source := removal.deleted_from) is not None:
        is_allowed = Collection.objects.editable_by(user).filter(pk=source.pk).exists()
    else:
        is_allowed = _could_manage(removal, user)
    return removal if is_allowed else None


def _could_manage(collection: Collection, user: User) -> bool:
    if collection.owner_id is not None:
        return collection.owner_id == user.pk
    return user.has_perm("agents.change_collection")


def restore(removal: Collection) -> Collection:
    """Undo a deletion; return the collection that has the documents now."""
    if (source := removal.deleted_from) is None:
        with transaction.atomic():
            name = _free_name(removal)
            Collection.objects.filter(pk=removal.pk).update(deleted_at=None, name=name)
        removal.refresh_from_db()
        return removal
    with transaction.atomic():
        documents = list(removal.documents.all())
        taken = set(source.documents.values_list("source", flat=True))
        for document in documents:
            name = _free_source(document.source, taken)
            taken.add(name)
            if name != document.source:
                document.collection = source
                document.source = name
                document.save(update_fields=["collection", "source"])
        removal.documents.update(collection=source)
        removal.delete()
        events.documents_changed(source)
    for document in documents:
        if document.status == Document.Status.CANCELLED:
            ingestion.retry(document)
    return source


def _free_name(collection: Collection) -> str:
    """Return a name that no other collection of the installation has by now."""
    present = Collection.objects.library().filter(owner=None, deleted_at=None)
    is_free = collection.owner_id is not None or not present.filter(name=collection.name)
    restored = _("restored")
    return collection.name if is_free else f"{collection.name[:60]} ({restored})"


def _free_source(source: str, taken: Container[str]) -> str:
    """Return the source, numbered if a newer document has it by now."""
    free = source
    number = 2
    while free in taken:
        free = f"{source[:480]} ({number})"
        number += 1
    return free


def due() -> QuerySet[Collection]:
    """Return what can't be restored any more."""
    return Collection.objects.filter(deleted_at__lt=timezone.now() - ERASE_AFTER)


def has_due() -> bool:
    return due().exists()


@periodic("deleted documents", every=60, when=has_due)
def erase_due() -> None:
    for collection in due().order_by("pk"):
        erase(collection)


def erase(collection: Collection) -> None:
    """Delete a collection with everything derived from its documents, and its files."""
    of_it = Q(collection=collection) | Q(collection__deleted_from=collection)
    for document in Document.objects.filter(of_it).order_by("pk"):
        ingestion.delete(document)
    collection.delete()
