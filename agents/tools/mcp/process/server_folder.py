"""The folder of an MCP server that is a local program: home, working folder and temp.

A saved server has a persistent one, with a lock file beside it. Several processes can run the
same server at once, so its temporary files are only deleted by the first one that starts it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ..configuration.config import ServerConfig
from . import sandbox

MAX_ENTRIES = 50_000


class ServerFolder:
    """A server's folder while it starts; its supervisor takes it over."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._lock_fd = -1
        self._temporary: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock, which the supervisor holds too, or delete what nobody uses."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
        if error is not None and self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    @property
    def lock_descriptors(self) -> tuple[int, ...]:
        """What the supervisor inherits, so that the lock lasts as long as the server."""
        return (self._lock_fd,) if self._lock_fd >= 0 else ()

    def hand_over(self) -> str:
        """Return what the supervisor deletes at the end; empty for a persistent folder."""
        return str(self._temporary or "")

    def prepare(self) -> Path:
        """Create the folder if needed, and delete an earlier start's temporary files."""
        if not self._config.home:
            self._temporary = Path(tempfile.mkdtemp(prefix="ashiato-mcp-"))
            _make_subfolders(self._temporary)
            return self._temporary
        path = sandbox.home_path(self._config)
        if path != Path(self._config.home):
            path.parent.mkdir(exist_ok=True)
            path.parent.chmod(0o711)
        lock_path = _lock_path(Path(self._config.home))
        lock_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_fd = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_first = True
        except BlockingIOError:
            is_first = False
        fcntl.flock(self._lock_fd, fcntl.LOCK_SH)  # with other instances
        _make_folder(path)
        if is_first:
            shutil.rmtree(path / "tmp", ignore_errors=True)
        _make_subfolders(path)
        return path


@dataclass(frozen=True, slots=True)
class FolderSize:
    """The size of a server's files; `is_partial` if there are too many to count."""

    bytes: int = 0
    files: int = 0
    is_partial: bool = False


def measure(home: Path) -> FolderSize:
    """Return the size of all files of a server, including those of its instances."""
    size = file_count = entry_count = 0
    for folder in _all_folders(home):
        for entry in _walk(folder):
            entry_count += 1
            if entry_count > MAX_ENTRIES:
                return FolderSize(size, file_count, is_partial=True)
            if not entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):  # a server that runs deletes its own files
                    size += entry.stat(follow_symlinks=False).st_size
                    file_count += 1
    return FolderSize(size, file_count)


def delete(home: Path) -> None:
    """Delete all files of a server, including those of its instances."""
    for folder in _all_folders(home):
        shutil.rmtree(folder, ignore_errors=True)
        _lock_path(folder).unlink(missing_ok=True)
    for group in instance_groups(home):
        shutil.rmtree(group, ignore_errors=True)


def delete_instance(folder: Path) -> None:
    """Delete the files of one person's or chat's instance."""
    for path in (folder, sandbox.user_home(folder)):
        shutil.rmtree(path, ignore_errors=True)
    _lock_path(folder).unlink(missing_ok=True)


def instance_groups(home: Path) -> list[Path]:
    """Return the folders that hold those of instances: of people and of chats."""
    return [home.with_name(f"{home.name}.{group}") for group in ("people", "chats")]


def instance_names(group: Path) -> set[str]:
    """Return the names of the instances that have files in one of these folders."""
    paths = group.iterdir() if group.is_dir() else ()
    return {path.name.removesuffix(".lock") for path in paths}


def _all_folders(home: Path) -> Iterator[Path]:
    yield from (home, sandbox.user_home(home))
    for group in instance_groups(home):
        for folder in sorted(group.iterdir()) if group.is_dir() else ():
            if folder.is_dir():
                yield from (folder, sandbox.user_home(folder))
            elif folder.suffix == ".lock":  # of a folder that only exists for another user
                yield sandbox.user_home(folder.with_suffix(""))


def _lock_path(home: Path) -> Path:
    return home.with_name(f"{home.name}.lock")


def _make_subfolders(path: Path) -> None:
    for name in sandbox.SUBFOLDERS:
        _make_folder(path / name)


def _make_folder(folder: Path) -> None:
    # The server may have put a link there that leads out of its folder.
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything below, without following links; files may vanish meanwhile."""
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
