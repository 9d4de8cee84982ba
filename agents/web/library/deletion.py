"""Deletes collections and documents, and restores them.

Documents that are deleted together move to a deleted collection of their own, so that a search
can't find them and their names are free again.
"""

from collections.abc import Iterable
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.access import audit, recently_deleted
from agents.access.recently_deleted import Kind, Restored
from agents.knowledge import ingestion, sources
from agents.models import Collection, Document
from agents.models.sharing.collections import MANAGE_PERMISSION, OF_INSTALLATION

from . import events


class DeletedCollections(Kind):
    name = "collection"
    label = gettext_lazy("Collection")
    plural = gettext_lazy("Collections")
    model = Collection

    def deleted(self) -> QuerySet[Collection]:
        # Those of chats go with their chat.
        return super().deleted().filter(topic="", deleted_from=None)

    def restorable_by(self, user: User) -> QuerySet[Collection]:
        own = Q(owner=user)
        is_manager = user.has_perm(MANAGE_PERMISSION)
        return self.deleted().filter(own | OF_INSTALLATION if is_manager else own)

    def restore(self, row: Collection, user: User, name: str = "") -> Restored:
        # Another collection of the installation may have its name by now.
        present = Collection.objects.library().present().filter(owner=None, name=row.name)
        is_taken = row.owner_id is None and present.exists()
        restored = _("restored")
        new_name = f"{row.name[:60]} ({restored})" if is_taken else row.name
        recently_deleted.unmark(row, name=new_name)
        if row.owner_id is None:
            audit.record(user, audit.RESTORED, row, name=row.name)
        return Restored(name=row.name, url=reverse("library:collection", args=[row.pk]))

    def erase(self, row: Collection) -> None:
        """Delete a collection with everything derived from its documents, and its files."""
        of_it = Q(collection=row) | Q(collection__deleted_from=row)
        for document in Document.objects.filter(of_it).order_by("pk"):
            ingestion.delete(document)
        row.delete()


class DeletedDocuments(DeletedCollections):
    """Documents that were deleted together."""

    name = "document"
    label = gettext_lazy("Documents")
    plural = gettext_lazy("Documents")

    def deleted(self) -> QuerySet[Collection]:
        present = Collection.objects.present().filter(pk=OuterRef("deleted_from"))
        return Collection.objects.exclude(deleted_at=None).filter(Exists(present))

    def restorable_by(self, user: User) -> QuerySet[Collection]:
        editable = Collection.objects.editable_by(user).order_by().values("pk")
        return self.deleted().filter(deleted_from__in=editable)

    def title(self, row: Collection) -> str:
        return title(row)

    def restore(self, row: Collection, user: User, name: str = "") -> Restored:
        restored = title(row)
        source = row.deleted_from
        assert source is not None
        documents = list(row.documents.all())
        taken_names = set(source.documents.values_list("source", flat=True))
        for document in documents:
            # Numbered if a newer document has the source by now.
            free = document.source
            number = 2
            while free in taken_names:
                free = f"{document.source[:480]} ({number})"
                number += 1
            taken_names.add(free)
            if free != document.source:
                document.collection = source
                document.source = free
                document.save(update_fields=["collection", "source"])
        sources.mark_removed(documents, is_removed=False)
        row.documents.update(collection=source)
        row.delete()
        events.documents_changed(source)
        for document in documents:
            if document.status == Document.Status.CANCELLED:
                transaction.on_commit(partial(ingestion.retry, document))
        return Restored(name=restored, url=reverse("library:collection", args=[source.pk]))


def delete_collection(collection: Collection, user: User | None) -> None:
    """Hide a collection with all its documents."""
    recently_deleted.mark(Collection.objects.filter(pk=collection.pk), user)
    events.access_changed(collection)


def delete_documents(
    collection: Collection, documents: Iterable[Document], user: User
) -> Collection:
    """Move documents to a deleted collection, and return that."""
    rows = list(documents)
    for document in rows:
        if document.is_pending:
            ingestion.cancel(document)
    with transaction.atomic():
        removal = Collection.objects.create(
            name=collection.name,
            # What was deleted from a project's documents isn't the installation's.
            owner_id=user.pk if collection.topic else collection.owner_id,
            deleted_at=timezone.now(),
            deleted_by=user,
            deleted_from=collection,
        )
        Document.objects.filter(pk__in=[document.pk for document in rows]).update(
            collection=removal
        )
        sources.mark_removed(rows, is_removed=True)
        events.documents_changed(collection)
    return removal


def title(removal: Collection) -> str:
    """Return the title of a deleted document, or how many were deleted together."""
    titles = list(removal.documents.order_by("pk").values_list("title", flat=True))
    if len(titles) == 1:
        return titles[0]
    count = len(titles)
    return ngettext("%(count)d document", "%(count)d documents", count) % {"count": count}


recently_deleted.register(DeletedCollections())
recently_deleted.register(DeletedDocuments())
