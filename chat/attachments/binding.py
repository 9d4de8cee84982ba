"""Binds files to the message they are sent with."""

from collections.abc import Collection, Iterable, Sequence
from copy import copy
from pathlib import PurePath
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.db.installation import configured
from agents.db.sanitize import fold_name, parse_id
from agents.models import Document
from chat.errors import MessageRejected
from chat.models import Attachment, ChatSession, Message

from . import reading

MAX_NAME_CHARS = 200


def claim(user: User, ids: Sequence[int], session: ChatSession | None) -> list[Attachment]:
    """Return the user's unsent files with these ids, in this order, for this transaction.

    One whose name another file of the chat has, or one that looks the same, gets a number.
    """
    if not ids:
        return []
    max_files = configured.MESSAGE_FILES.value
    if len(ids) > max_files:
        sentence = _("A message can have at most %(most)d files.")
        raise MessageRejected(sentence % {"most": max_files})
    rows = Attachment.objects.unsent_by(user).select_for_update(of=("self",))
    unsent = rows.select_related("file").in_bulk(ids)
    if len(unsent) < len(set(ids)):
        raise MessageRejected(
            _("A file is no longer available. Remove it, attach it again and send.")
        )
    files = [unsent[pk] for pk in dict.fromkeys(ids)]
    files_by_name: dict[str, int] = {}
    if session is not None:
        rows_of_chat = Attachment.objects.filter(message__session=session)
        for name, file in rows_of_chat.values_list("name", "file_id"):
            files_by_name[fold_name(name)] = file
    for row in files:
        original = PurePath(row.name)
        number = 2
        while files_by_name.setdefault(fold_name(row.name), row.file_id) != row.file_id:
            ending = f" ({number}){original.suffix}"
            row.name = f"{original.stem[: MAX_NAME_CHARS - len(ending)]}{ending}"
            number += 1
        if number > 2 and row.document_id is not None:
            source = f"{row.pk}/{row.name}"
            Document.objects.filter(pk=row.document_id).update(source=source)
    return files


def copies_of(message: int) -> list[Attachment]:
    """Return unsaved copies of a message's files, for a message that replaces it."""
    copies = [copy(row) for row in sent_with(message)]
    for row in copies:
        row.pk = None
        row.message = None
        row._state.adding = True
    return copies


def sent_with(message: int) -> list[Attachment]:
    return list(Attachment.objects.filter(message=message).select_related("file", "document"))


def attach(message: Message, files: Iterable[Attachment]) -> None:
    """Bind files to a saved message; its chat can then search their text."""
    for row in files:
        row.message = message
        row.save()
    reading.move(message.session, files)


def detach(message: Message) -> list[int]:
    """Take the files from a queued message that is about to be deleted."""
    if not message.has_files:
        return []
    rows = Attachment.objects.filter(message=message.pk)
    attachment_ids = list(rows.values_list("pk", flat=True))
    rows.update(message=None)
    return attachment_ids


def rebind(attachment_ids: Sequence[int], message: Message) -> None:
    """Give detached files to the row that replaces a queued message."""
    if attachment_ids:
        Attachment.objects.filter(pk__in=attachment_ids).update(message=message)


def ids_of(user: User, message: int | None) -> list[int]:
    """Return the ids of the files of a user's own message."""
    rows = Attachment.objects.filter(message=message, message__author=user)
    return list(rows.values_list("pk", flat=True)) if message is not None else []


def parse_ids(text: object) -> list[int]:
    """Return the ids in a form's field, such as "12,13"; other text is ignored."""
    max_ids = configured.MESSAGE_FILES.value + 1
    texts = text.split(",")[:max_ids] if isinstance(text, str) else []
    return [pk for id_text in texts if (pk := parse_id(id_text)) is not None]


def refs_of(files: Iterable[Attachment]) -> list[dict[str, Any]]:
    """Return references for the run: what its files are, not their content."""
    return [
        {
            "kind": row.kind,
            "name": row.name,
            "mime_type": row.mime_type,
            "size": row.file.size,
            "digest": row.file.digest,
            "document": row.document_id,
            **({"width": row.width, "height": row.height} if row.width else {}),
        }
        for row in files
    ]


def names_of(files: Iterable[Attachment]) -> str:
    """Return the question of a message that only has files."""
    return ", ".join(row.name for row in files)


def hide(removal: ChatSession, messages: Collection[int]) -> None:
    """Move the documents of deleted messages, so that no search finds them any more."""
    hidden = Attachment.objects.filter(message__in=messages).exclude(document=None)
    documents = set(hidden.values_list("document_id", flat=True))
    if documents:
        visible = Attachment.objects.filter(document__in=documents)
        visible = visible.exclude(message__in=messages)
        used = set(visible.values_list("document_id", flat=True))
        reading.move_documents(removal, documents - used)


def show(session: ChatSession, messages: Collection[int]) -> None:
    """Move the documents of restored messages back."""
    reading.move(session, Attachment.objects.filter(message__in=messages))


def stored_for(user: int) -> QuerySet[Attachment, int]:
    """Return the stored files that count towards a user's quota."""
    return Attachment.objects.filter(user=user).order_by().values_list("file_id", flat=True)
