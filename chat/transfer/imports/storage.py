"""Uploaded files, until their chats are imported."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from chat.models import ChatImport


def folder(pk: int) -> Path:
    return settings.DATA_DIR / "imports" / str(pk)


def save(pk: int, files: Iterable[UploadedFile]) -> None:
    """Save uploads under numbers, so that their names can't lead anywhere."""
    directory = folder(pk)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, file in enumerate(files):
        with (directory / str(number)).open("wb") as saved:
            for chunk in file.chunks():
                saved.write(chunk)


def paths(job: ChatImport) -> list[tuple[str, Path]]:
    """Return the uploads by their names."""
    directory = folder(job.pk)
    return [(str(name), directory / str(number)) for number, name in enumerate(job.files)]


def is_here(job: ChatImport) -> bool:
    """Whether this machine has the files; another one may have received them."""
    return all(path.exists() for _name, path in paths(job))


def delete(pk: int) -> None:
    shutil.rmtree(folder(pk), ignore_errors=True)


def delete_unowned() -> None:
    """Delete files of imports that have ended or no longer exist."""
    directory = settings.DATA_DIR / "imports"
    if not directory.is_dir():
        return
    waiting = (ChatImport.Status.READY, *ChatImport.ACTIVE)
    jobs = set(ChatImport.objects.filter(status__in=waiting).values_list("pk", flat=True))
    for path in directory.iterdir():
        if not path.name.isdecimal() or int(path.name) not in jobs:
            shutil.rmtree(path, ignore_errors=True)
