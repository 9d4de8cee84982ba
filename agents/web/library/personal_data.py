"""What of the library belongs to a user: exported and erased with their account."""

from collections.abc import Iterator

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from agents.knowledge import ingestion
from agents.knowledge.files.store import CHUNK_BYTES
from agents.models import Collection, Document

OF_INSTALLATION = Q(collection__owner=None, collection__topic="")


def own_documents(user: User) -> QuerySet[Document]:
    """Return documents in the user's collections, and those they added elsewhere."""
    return Document.objects.filter(Q(collection__owner=user) | Q(owner=user))


def exported_documents(user: User) -> QuerySet[Document]:
    """Return the user's documents without the files of other members in chats."""
    in_chat = Q(collection__topic__startswith="chat.")
    return own_documents(user).exclude(in_chat & ~Q(owner=user))


def erasable_documents(user: User) -> QuerySet[Document]:
    """Return the user's documents except those in collections of the installation."""
    return own_documents(user).exclude(OF_INSTALLATION)


def staying_documents(user: User) -> QuerySet[Document]:
    """Return what they added to collections of the installation: it stays without a name."""
    return Document.objects.filter(OF_INSTALLATION, owner=user)


def erase(user: User) -> None:
    """Delete the user's documents with everything derived, and their collections."""
    for document in erasable_documents(user).order_by("pk"):
        ingestion.delete(document)
    Collection.objects.filter(owner=user).delete()
    staying_documents(user).update(owner=None)


def content(document: Document) -> Iterator[bytes]:
    """Yield the original in pieces, or the text of a document without one."""
    if document.file is None:
        for part in document.parts.all():
            yield f"{part.text}\n\n".encode()
        return
    with document.file.open() as file:
        while piece := file.read(CHUNK_BYTES):
            yield piece
