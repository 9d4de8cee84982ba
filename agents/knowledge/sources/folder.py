"""A folder on the server, below one of those that the environment names.

Every name is opened in its open parent folder and never as a link, so that nothing that changes
meanwhile leads outside.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from django.conf import settings

from agents.db.sanitize import visible_name
from agents.engine.sentences import Sentence as _
from agents.models import DocumentSource

from .place import FileUnreadable, Heartbeat, Place, PlaceFile, PlaceUnreadable

MAX_DEPTH = 50
MAX_NAMES = 200_000  # in one folder
CHUNK_BYTES = 256 * 1024
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe must not make us wait for a writer.
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

NOT_ALLOWED = _("This folder isn't in a folder that ASHIATO_SOURCE_FOLDERS lists.")
NO_FOLDER = _("The server has no such folder, or can't read it.")
CHANGED = _("The file changed while it was read.")


def allowed_folders() -> list[Path]:
    """Return the folders below which sources can be."""
    return [Path(folder).resolve() for folder in settings.SOURCE_FOLDERS]


def find_folder(path: str) -> tuple[Path, tuple[str, ...]]:
    """Return the allowed folder and the names below it; raise PlaceUnreadable."""
    try:
        resolved = Path(path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise PlaceUnreadable(NOT_ALLOWED) from error
    if Path(path).is_absolute():
        for allowed in allowed_folders():
            if resolved.is_relative_to(allowed):
                if not resolved.is_dir():
                    raise PlaceUnreadable(NO_FOLDER)
                return allowed, resolved.relative_to(allowed).parts
    # The same error for all others, so that it doesn't reveal which folders exist.
    raise PlaceUnreadable(NOT_ALLOWED)


@contextmanager
def open_folder(source: DocumentSource, heartbeat: Heartbeat) -> Iterator[Place]:
    allowed, names = find_folder(str(source.place.get("path", "")))
    try:
        folder = os.open(allowed, OPEN_FOLDER)
    except OSError as error:
        raise PlaceUnreadable(NO_FOLDER) from error
    try:
        for name in names:
            parent = folder
            folder = os.open(name, OPEN_FOLDER, dir_fd=parent)
            os.close(parent)
    except OSError as error:
        os.close(folder)
        raise PlaceUnreadable(NO_FOLDER) from error
    try:
        yield _Folder(folder, heartbeat)
    finally:
        os.close(folder)


class _Folder:
    version = ""

    def __init__(self, folder: int, heartbeat: Heartbeat) -> None:
        self._folder = folder
        self._heartbeat = heartbeat
        self._name = "/"

    def files(self) -> Iterator[PlaceFile]:
        try:
            yield from self._walk(self._folder, ())
        except OSError as error:
            sentence = _("A folder can't be read: %(name)s.")
            raise PlaceUnreadable(sentence.fill(name=visible_name(self._name))) from error

    def _walk(self, folder: int, above: tuple[str, ...]) -> Iterator[PlaceFile]:
        self._heartbeat()
        self._name = "/".join(above) or "/"
        with os.scandir(folder) as entries:
            visible = (entry.name for entry in entries if not entry.name.startswith("."))
            names = sorted(islice(visible, MAX_NAMES + 1))
        if len(names) > MAX_NAMES:
            sentence = _("A folder has more than %(limit)s names.")
            raise PlaceUnreadable(sentence.fill(limit=f"{MAX_NAMES:,}"))
        for name in names:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue  # deleted just now
            if stat.S_ISREG(status.st_mode):
                key = "/".join((*above, name))
                yield PlaceFile(
                    key=key, version=_version(status), name=key, size=status.st_size
                )
            elif stat.S_ISDIR(status.st_mode):
                if len(above) >= MAX_DEPTH:
                    raise PlaceUnreadable(
                        _("The folders are nested deeper than %(limit)s.", limit=MAX_DEPTH)
                    )
                inner = os.open(name, OPEN_FOLDER, dir_fd=folder)
                try:
                    yield from self._walk(inner, (*above, name))
                finally:
                    os.close(inner)

    def read(self, file: PlaceFile) -> Iterator[bytes]:
        *folders, name = file.key.split("/")
        opened: list[int] = []
        try:
            for folder in folders:
                parent = opened[-1] if opened else self._folder
                opened.append(os.open(folder, OPEN_FOLDER, dir_fd=parent))
            parent = opened[-1] if opened else self._folder
            opened.append(os.open(name, OPEN_FILE, dir_fd=parent))
            if _version(os.fstat(opened[-1])) != file.version:
                raise FileUnreadable(CHANGED)
            while chunk := os.read(opened[-1], CHUNK_BYTES):
                yield chunk
            if _version(os.fstat(opened[-1])) != file.version:
                raise FileUnreadable(CHANGED)
        except OSError as error:
            raise FileUnreadable(_("The server can't read this file.")) from error
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _version(status: os.stat_result) -> str:
    """Return what changes with the content; a link or a device never has a file's version."""
    kind = stat.S_IFMT(status.st_mode)
    return f"{kind:o}-{status.st_size}-{status.st_mtime_ns}"
