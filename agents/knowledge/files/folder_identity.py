"""Notices processes of one installation that store files in different folders.

The database and the folder of files have the same random id. A process whose folder has none,
or another one, would not find what the others save there.
"""

import uuid
from pathlib import Path

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.utils.translation import gettext as _

from agents.models import PeriodicJob

NAME = "files folder"
MARKER = "installation"


def find_problem() -> str:
    """Return why this process can't see the others' files; empty if it can."""
    storage = storages["files"]
    if not isinstance(storage, FileSystemStorage):
        return ""
    row, is_new = PeriodicJob.objects.get_or_create(
        name=NAME, defaults={"result": {"id": uuid.uuid4().hex}}
    )
    if is_new:
        mark()
    if _marker(storage).is_file() and _marker(storage).read_text() == row.result["id"]:
        return ""
    return _(
        "%(folder)s isn't the data folder in which this installation saves its files, so files "
        "that other processes receive are missing here. Give all processes the same "
        "ASHIATO_DATA folder (a shared volume), or store files in a bucket (ASHIATO_S3_BUCKET)."
    ) % {"folder": settings.DATA_DIR}


def mark() -> None:
    """Make this folder the one of the installation, such as after restoring a backup."""
    storage = storages["files"]
    row = PeriodicJob.objects.filter(name=NAME).first()
    if row is not None and isinstance(storage, FileSystemStorage):
        _marker(storage).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _marker(storage).write_text(row.result["id"])


def _marker(storage: FileSystemStorage) -> Path:
    return Path(storage.location, MARKER)
