"""The text of files: read in the background, searchable in their chat only.

Until its message is sent, a document is in a collection that only its user can see.
"""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agents.catalog.attachments import file_tables
from agents.knowledge import ingestion
from agents.models import Collection as DocumentCollection
from agents.models import Document
from chat.models import Attachment, ChatSession


def start(attachment: Attachment, *, is_private: bool = False) -> None:
    """Have the file's text read; a private file is read on this server only."""
    drafts, _is_new = DocumentCollection.objects.get_or_create(
        {"name": _("Unsent files"), "owner": attachment.user},
        topic=f"drafts.{attachment.user_id}",
    )
    # A number before the name, because two files can have the same one.
    name = f"{attachment.pk}/{attachment.name}"
    attachment.document = ingestion.add_file(
        drafts, attachment.user, name, attachment.file, is_private=is_private
    )
    attachment.save(update_fields=["document"])


def retry(attachment: Attachment) -> None:
    """Read a file again that couldn't be read."""
    if attachment.document is not None:
        ingestion.retry(attachment.document)


def move(session: ChatSession, files: Iterable[Attachment]) -> None:
    """Make the text of these files searchable in a chat."""
    move_documents(session, {row.document_id for row in files if row.document_id is not None})


def move_documents(session: ChatSession, documents: Collection[int]) -> None:
    """Move documents into a chat's collection.

    One that is being read follows when the run that uses it starts: its reader has the row.
    """
    if not documents:
        return
    collection = chat_collection(session)
    rows = Document.objects.filter(pk__in=documents)
    rows.exclude(status__in=PENDING).update(collection=collection)


PENDING = (Document.Status.QUEUED, Document.Status.READING, Document.Status.INDEXING)


def chat_collection(session: ChatSession) -> DocumentCollection:
    collection, _is_new = DocumentCollection.objects.get_or_create(
        {"name": session.title[:80], "owner": session.user}, topic=session.topic
    )
    return collection


def forget_attachment(instance: Attachment, **_signal: Any) -> None:
    """Delete the text of a deleted file, unless another message has it, too."""
    if instance.document_id is not None:
        transaction.on_commit(partial(_delete_unused, instance.document_id), robust=True)


def forget_table(instance: Attachment, **_signal: Any) -> None:
    """Delete the rows of a table that is about to be deleted; other tables are loaded again."""
    if instance.kind == Attachment.Kind.TABLE and instance.message is not None:
        topic = f"chat.{instance.message.session_id}"
        transaction.on_commit(partial(file_tables.delete_for_topic, topic), robust=True)


def forget_chat(instance: ChatSession, **_signal: Any) -> None:
    """Delete the documents of a deleted chat."""
    topic = f"chat.{instance.pk}"
    transaction.on_commit(partial(delete_collection, topic), robust=True)
    transaction.on_commit(partial(file_tables.delete_for_topic, topic), robust=True)


def _delete_unused(pk: int) -> None:
    if Attachment.objects.filter(document=pk).exists():
        return
    topics = ("chat.", "drafts.")
    for document in Document.objects.filter(pk=pk).select_related("collection"):
        if document.collection.topic.startswith(topics):
            ingestion.delete(document)


def delete_collection(topic: str) -> None:
    """Delete the documents of a chat, or of a program's question."""
    for collection in DocumentCollection.objects.filter(topic=topic):
        for document in collection.documents.all():
            ingestion.delete(document)
        collection.delete()
