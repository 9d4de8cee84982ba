"""The data folder, with the secret key and the database: only for our own user."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

OTHERS_MASK = 0o077
# MCP servers write into folders of their own, inside one of ours.
SKIPPED_FOLDER = "mcp"
MAX_ENTRIES = 20_000


def protect(data: Path) -> None:
    """Remove other users' access, now and for all later files.

    SQLite gives -wal and -shm the mode of their database.
    """
    os.umask(OTHERS_MASK)
    # A shared folder such as /tmp must stay accessible.
    is_shared = data == Path(data.anchor) or bool(data.stat().st_mode & stat.S_ISVTX)
    if not is_shared:
        for path in _entries(data):
            _restrict(path)


def is_exposed(data: Path) -> bool:
    """Whether other users of this machine can look into the folder."""
    return bool(stat.S_IMODE(data.stat().st_mode) & OTHERS_MASK)


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
    """Restrict only our own files and folders, never through a link."""
    try:
        # By descriptor, so that the checked file is the changed one.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # a link, a socket, another user's, or deleted meanwhile
    try:
        status = os.fstat(descriptor)
        is_file = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
        is_ours = status.st_uid == os.geteuid()
        mode = stat.S_IMODE(status.st_mode)
        if is_file and is_ours and mode & OTHERS_MASK:
            os.fchmod(descriptor, mode & ~OTHERS_MASK)  # a program stays executable
    finally:
        os.close(descriptor)
