"""Saves each content once, by its digest, and deletes it when no row refers to it.

Bytes are in place before their row is committed, and a row is locked while its bytes are
deleted, so a row always has its bytes. Call `save` in the transaction that creates the row
which refers to the file; otherwise it can be released in between.
"""

import errno
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, TypeAlias

from django.contrib.auth import get_user_model
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, connection, transaction
from django.db.models import Model, Q, QuerySet, Sum
from django.db.models.signals import post_delete
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import file_types
from agents.db.installation import configured
from agents.models import Document, StoredFile
from agents.models.types import AnyUser

from .errors import FileRefused, StorageUnavailable
from .sizes import format_megabytes

Content: TypeAlias = "UploadedFile[Any] | bytes | Iterable[bytes]"

CHUNK_BYTES = 256 * 1024
MAX_FILE_BYTES = 50_000_000
ORPHAN_AGE = timedelta(days=1)
DRAFTS = "incoming"
FULL_DISK = {errno.ENOSPC, errno.EDQUOT}
THUMBNAILS = "thumbnails"

# Each returns the ids of the files that a user uploaded for one purpose.
uploads: list[Callable[[int], QuerySet[Any, int | None]]] = [
    lambda user: Document.objects.filter(owner=user, file__isnull=False).values_list(
        "file_id", flat=True
    )
]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StagedFile:
    """A received file that no row knows yet."""

    path: Path
    digest: str
    size: int
    mime_type: str


class _Placed(File):  # only generic in its stubs
    """A file that Django's storage moves instead of copying."""

    def temporary_file_path(self) -> str:
        return str(self.name)


def save(
    content: Content, *, name: str, owner: AnyUser | None, max_bytes: int = MAX_FILE_BYTES
) -> StoredFile:
    """Save a file of this user and return its row; raise FileRefused.

    Without an owner, no quota applies.
    """
    with stage(content, name=name, max_bytes=max_bytes) as staged:
        return commit(staged, owner=owner)


@contextmanager
def stage(
    content: Content, *, name: str, max_bytes: int = MAX_FILE_BYTES
) -> Iterator[StagedFile]:
    """Receive a file: nothing remains of it unless it is committed."""
    with _disk_errors():
        path = _draft()
    try:
        with _disk_errors(), path.open("r+b") as file:
            digest, size = _receive(file, content, name, max_bytes)
            mime_type = file_types.sniff(file)
            os.fsync(file.fileno())
        yield StagedFile(path, digest, size, mime_type)
    finally:
        path.unlink(missing_ok=True)


def commit(staged: StagedFile, *, owner: AnyUser | None) -> StoredFile:
    """Move the bytes into place and return their row; raise FileRefused."""
    with transaction.atomic(), _disk_errors():
        has_lock = connection.features.has_select_for_no_key_update
        if owner is not None and has_lock and _quota_bytes():
            # A user's parallel uploads wait for each other: each must count the one before.
            users = get_user_model()._default_manager.filter(pk=owner.pk or 0)
            list(users.select_for_update(no_key=True).values_list("pk"))
        row = _lock_row(staged)
        if owner is not None:
            check_quota(owner, row)
        place(staged, row.path)
    return row


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Turn a full disk, or a bucket that can't be reached, into a sentence for the user."""
    try:
        yield
    except StorageUnavailable as error:
        sentence = _(
            "The file storage isn't responding, so the file wasn't saved. Try again later."
        )
        raise FileRefused(sentence) from error
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        logger.error("A file can't be saved: %s", error)
        sentence = _("The server's disk is full, so the file wasn't saved. Try again later.")
        raise FileRefused(sentence) from error


def _lock_row(staged: StagedFile) -> StoredFile:
    rows = StoredFile.objects.select_for_update()
    for _attempt in range(3):
        if row := rows.filter(digest=staged.digest).first():
            return row
        try:
            with transaction.atomic():
                return StoredFile.objects.create(
                    digest=staged.digest, size=staged.size, mime_type=staged.mime_type
                )
        except IntegrityError:
            continue  # another process has just saved it
    return rows.get(digest=staged.digest)


def place(staged: StagedFile, path: str) -> None:
    storage = storages["files"]
    if storage.exists(path):
        return
    with staged.path.open("rb") as file:
        content = _Placed(file, name=str(staged.path))
        saved = storage.save(path, content)
    if saved != path:
        storage.delete(saved)  # another process was faster


def _receive(file: BinaryIO, content: Content, name: str, max_bytes: int) -> tuple[str, int]:
    """Write the content into a file, and return its digest and size."""
    digest = sha256()
    size = 0
    if isinstance(content, UploadedFile):
        content = content.chunks(CHUNK_BYTES)
    elif isinstance(content, bytes):
        content = [content]
    for chunk in content:
        size += len(chunk)
        if size > max_bytes:
            limit = format_megabytes(max_bytes)
            raise FileRefused(
                _("%(name)s is larger than %(limit)s.") % {"name": name, "limit": limit}
            )
        digest.update(chunk)
        file.write(chunk)
    if not size:
        raise FileRefused(_("%(name)s is empty.") % {"name": name})
    file.flush()
    return digest.hexdigest(), size


def _draft() -> Path:
    """Create an empty file that only we can read, where a rename suffices if possible."""
    storage = storages["files"]
    folder = None
    if isinstance(storage, FileSystemStorage):
        folder = Path(storage.location, DRAFTS)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, path = tempfile.mkstemp(dir=folder, prefix="upload-")
    os.close(descriptor)
    return Path(path)


@contextmanager
def local_path(file: StoredFile) -> Iterator[Path]:
    """Yield a path to the file's bytes; those of a bucket are copied here for a moment."""
    storage = storages["files"]
    if isinstance(storage, FileSystemStorage):
        yield Path(storage.path(file.path))
        return
    copy = _draft()
    try:
        with file.open() as content, copy.open("wb") as target:
            copyfileobj(content, target)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def used_bytes(user: AnyUser) -> int:
    """Return the size of what this user uploaded, each content once."""
    return _uploaded(user).aggregate(sum=Sum("size"))["sum"] or 0


def _uploaded(user: AnyUser) -> QuerySet[StoredFile]:
    is_uploaded = Q(pk__in=[])
    for find in uploads:
        is_uploaded |= Q(pk__in=find(user.pk or 0))
    return StoredFile.objects.filter(is_uploaded)


def _quota_bytes() -> int:
    """Return how much a user can store; 0 is no limit."""
    return (configured.USER_FILES_MB.value or 0) * 1_000_000


def check_quota(user: AnyUser, file: StoredFile) -> None:
    """Raise FileRefused if this file is more than the user can store."""
    if not (limit := _quota_bytes()):
        return
    used = _uploaded(user).exclude(pk=file.pk).aggregate(sum=Sum("size"))["sum"] or 0
    if used + file.size > limit:
        sentence = _(
            "Your files use %(used)s of %(limit)s, and this one has %(size)s. "
            "Delete files or chats you no longer need."
        )
        sizes = {"used": used, "limit": limit, "size": file.size}
        raise FileRefused(sentence % {key: format_megabytes(sizes[key]) for key in sizes})


def release(files: Iterable[int | None]) -> int:
    """Delete those of these files that no row refers to, and return how many."""
    count = 0
    for pk in sorted({pk for pk in files if pk is not None}):
        with transaction.atomic():
            row = StoredFile.objects.select_for_update().filter(pk=pk).first()
            if row is not None and not is_used(row):
                row.delete()
                for path in (row.path, thumbnail_path(row)):
                    storages["files"].delete(path)
                count += 1
    return count


def release_on_delete() -> None:
    """Release a file when any row that refers to one is deleted, once that is committed."""
    for relation in StoredFile._meta.related_objects:
        field = relation.field.attname
        post_delete.connect(
            partial(_release_of, field),
            sender=relation.related_model,
            weak=False,
            dispatch_uid=f"release {field}",
        )


def _release_of(field: str, instance: Model, using: str, **_signal: Any) -> None:
    if (file := getattr(instance, field)) is not None:
        transaction.on_commit(partial(release, [file]), using=using, robust=True)


def is_used(file: StoredFile) -> bool:
    """Whether any row of any table refers to the file."""
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: file.pk}).exists()
        for relation in StoredFile._meta.related_objects
    )


def thumbnail_path(file: StoredFile) -> str:
    return f"{THUMBNAILS}/{file.path}.webp"


def sweep() -> int:
    """Delete what a crash left behind a day ago: unused rows, bytes without a row, drafts."""
    cutoff = timezone.now() - ORPHAN_AGE
    unused = StoredFile.objects.filter(created_at__lt=cutoff)
    for relation in StoredFile._meta.related_objects:
        referring_rows = relation.related_model._base_manager.filter(
            **{f"{relation.field.name}__isnull": False}
        )
        unused = unused.exclude(pk__in=referring_rows.values(relation.field.name))
    count = release(unused.values_list("pk", flat=True))
    storage = storages["files"]
    # Those of contents and thumbnails, and those that uploads are received in.
    folders = [name for name in _list(storage, "")[0] if len(name) == 2]
    for parent in (THUMBNAILS, DRAFTS):
        folders += [f"{parent}/{name}" for name in _list(storage, parent)[0]]
    for folder in (*folders, DRAFTS):
        digests = {
            name: name.removesuffix(".webp")
            for name in _list(storage, folder)[1]
            if storage.get_modified_time(f"{folder}/{name}") < cutoff
        }
        rows = StoredFile.objects.filter(digest__in=digests.values())
        saved_digests = set(rows.values_list("digest", flat=True))
        for name, digest in digests.items():
            if digest not in saved_digests:
                storage.delete(f"{folder}/{name}")
                count += 1
        if folder.startswith(f"{DRAFTS}/"):
            with suppress(OSError):  # not empty: an image is being scaled in it
                storage.delete(folder)
    return count


def _list(storage: Storage, folder: str) -> tuple[list[str], list[str]]:
    """Return the names of the folders and files in a folder."""
    try:
        return storage.listdir(folder)
    except FileNotFoundError:
        return [], []
