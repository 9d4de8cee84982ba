"""The data folder, which holds the secret key and the database: for our own user only."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER_MODE, FILE_MODE = 0o700, 0o600
OTHERS_MASK = 0o077
# What servers write themselves is in folders of theirs, inside a folder that is ours.
SKIPPED_FOLDER = "mcp"
MAX_ENTRIES = 20_000


def protect(data: Path) -> None:
    """Take away what other users may do here, now and for all files that are made later.

    SQLite gives -wal and -shm the mode of the database they belong to.
    """
    os.umask(OTHERS_MASK)
    if not _is_shared(data):
        for path in _entries(data):
            _restrict(path)


def is_exposed(data: Path) -> bool:
    """Whether other users of this machine can look into the folder."""
    return bool(stat.S_IMODE(data.stat().st_mode) & OTHERS_MASK)


def _is_shared(data: Path) -> bool:
    """/tmp and its like belong to everybody: closing them would break other programs."""
    return data == Path(data.anchor) or bool(data.stat().st_mode & stat.S_ISVTX)


def _entries(data: Path) -> Iterator[Path]:
    yield data
    count = 0
    for folder, folders, files in os.walk(data, followlinks=False):
        for name in (*folders, *files):
            yield Path(folder, name)
        if Path(folder) == data / SKIPPED_FOLDER:
            folders.clear()
        count += len(folders) + len(files)
        if count > MAX_ENTRIES:
            return


def _restrict(path: Path) -> None:
    """Only folders and files of ours; a link may lead anywhere, and sockets are asked for."""
    try:
        # By its descriptor, so that what is checked is what is changed.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # a link, a socket, something of another user's, or gone again
    try:
        found = os.fstat(descriptor)
        wanted = {stat.S_IFDIR: FOLDER_MODE, stat.S_IFREG: FILE_MODE}.get(
            stat.S_IFMT(found.st_mode)
        )
        is_ours = found.st_uid == os.geteuid()
        if wanted is not None and is_ours and stat.S_IMODE(found.st_mode) & OTHERS_MASK:
            os.fchmod(descriptor, wanted)
    finally:
        os.close(descriptor)
