"""Saves the attachments of a run: rows in the database, bytes once by their digest."""

import logging
import secrets
from collections.abc import Iterable

from django.db import DatabaseError, transaction
from django.db.models import Sum

from agents.db import database
from agents.engine.attachments import (
    AttachmentRef,
    AttachmentRefused,
    AttachmentStore,
    MemoryAttachmentStore,
    check_run_size,
    reference,
    refs_of,
)
from agents.engine.events import Event
from agents.engine.sentences import Sentence as _
from agents.engine.tool import Attachment
from agents.knowledge.files import FileRefused, store
from agents.models import Run, RunAttachment

UNKEPT = _("not saved: this agent stores no personal data, and files can't be masked")
NOT_SAVED = _("not saved: the database didn't respond")
NO_STORAGE = "not saved: the file storage didn't respond"

logger = logging.getLogger(__name__)


def build_store(run: Run, *, stores_data: bool) -> AttachmentStore:
    """Return the run's store; without `stores_data`, nothing outlives the process."""
    if not stores_data:
        return UnkeptAttachmentStore()
    return MemoryAttachmentStore() if run.pk is None else RunAttachmentStore(run.pk)


class RunAttachmentStore:
    """Saves attachments of one run, each once."""

    def __init__(self, run: int) -> None:
        self.run = run

    async def save(self, attachment: Attachment) -> AttachmentRef:
        ref = reference(attachment)
        try:
            await database.run(self._save, attachment, ref)
        except DatabaseError as error:
            logger.warning("Can't save an attachment of run %s: %s", self.run, error)
            raise AttachmentRefused(NOT_SAVED) from error
        except (OSError, FileRefused) as error:
            logger.warning("Can't store a file of run %s: %s", self.run, error)
            raise AttachmentRefused(NO_STORAGE) from error
        return ref

    async def load(self, digest: str) -> bytes | None:
        return await database.run(self._load, digest)

    def _save(self, attachment: Attachment, ref: AttachmentRef) -> None:
        rows = RunAttachment.objects.filter(run=self.run)
        with store.stage(attachment.data, name=ref["name"]) as staged, transaction.atomic():
            if rows.filter(digest=ref["digest"]).exists():
                return
            check_run_size(rows.aggregate(total=Sum("size"))["total"] or 0, ref["size"])
            RunAttachment.objects.create(
                run_id=self.run,
                digest=ref["digest"],
                mime_type=ref["mime_type"],
                name=ref["name"],
                size=ref["size"],
                file=store.commit(staged, owner=None),
            )

    def _load(self, digest: str) -> bytes | None:
        rows = RunAttachment.objects.filter(run=self.run, digest=digest)
        row = rows.select_related("file").first()
        if row is None:
            return None
        try:
            with row.open() as content:
                return bytes(content.read())
        except OSError as error:
            logger.warning("Can't read attachment %s: %s", row.pk, error)
            return None


class UnkeptAttachmentStore(MemoryAttachmentStore):
    """Lets the model see an attachment, but saves neither its bytes nor their digest."""

    async def save(self, attachment: Attachment) -> AttachmentRef:
        ref = await super().save(attachment)
        alias = secrets.token_hex(32)
        self._data[alias] = self._data.pop(ref["digest"])
        return {**ref, "digest": alias, "problem": UNKEPT}


def copy_attachments(origin: int, run: int, events: Iterable[Event]) -> None:
    """Copy what replayed events refer to, so that a rerun doesn't depend on its origin."""
    digests = {ref["digest"] for event in events for ref in refs_of(event.data)}
    if not digests:
        return
    copied = RunAttachment.objects.filter(run=run).values_list("digest", flat=True)
    for digest in digests.difference(copied):
        for row in RunAttachment.objects.filter(run=origin, digest=digest):
            row.pk = None
            row.run_id = run
            row.save(force_insert=True)
