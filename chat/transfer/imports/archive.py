"""Reads the chats in uploaded files: JSON, or a ZIP of it.

Nothing is ever unpacked to disk, and names in an archive are only compared. What is read from
an archive is counted, because its own figures about its size can be wrong.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from zlib import error as ZlibError

from chat.transfer.imports import formats, json_stream
from chat.transfer.imports.values import LimitExceeded, NotImportable, Problem, SourceChat

MAX_ENTRIES = 20_000
MAX_DIRECTORY_BYTES = 16 * 1024**2
MAX_FILE_BYTES = 2 * 1024**3  # unpacked
MAX_TOTAL_BYTES = 4 * 1024**3  # unpacked, of all files of an upload
MAX_CHATS = 50_000
MAX_SIGNS = 50_000_000  # brackets and commas of all files, which take two minutes
ZIP_START = b"PK\x03\x04"
DIRECTORY_ENTRY = b"PK\x01\x02"
# Damaged, encrypted, or compressed in an unknown way.
ZIP_ERRORS = (zipfile.BadZipFile, ZlibError, EOFError, NotImplementedError, RuntimeError)
CHATGPT_FILE = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")
# Other files in an export, which contain no chats.
OTHER_FILES = re.compile(
    r"(?:^|/)(?:__MACOSX/.*|\._.*|user|users|projects|memories|message_feedback"
    r"|model_comparisons|shared_conversations|group_chats|export_manifest|user_settings"
    r"|account|sign-ins)(?:\.json)?$"
)


@dataclass(slots=True)
class UploadedChat:
    """A chat in an upload, or why it can't be read."""

    file: str
    chat: SourceChat | None = None
    problem: NotImportable | None = None


def chats(files: list[tuple[str, Path]]) -> Iterator[UploadedChat]:
    """Yield the chats in uploaded files, given by name and path; raise LimitExceeded.

    A file that can't be read doesn't keep the others from being read.
    """
    budget = _Budget()
    count = 0
    for name, path in files:
        for chat in _chats_of_upload(name, path, budget):
            count += 1
            if count > MAX_CHATS:
                raise LimitExceeded(Problem.TOO_MANY_CHATS)
            yield chat


def _chats_of_upload(name: str, path: Path, budget: "_Budget") -> Iterator[UploadedChat]:
    try:
        with path.open("rb") as file:
            if file.read(len(ZIP_START)) != ZIP_START:
                file.seek(0)
                yield from _chats_of_file(name, file, budget)
                return
        with _ArchiveFile(io.FileIO(path)) as zipped, zipfile.ZipFile(zipped) as archive:
            entries = [
                entry
                for entry in archive.infolist()
                if entry.filename.lower().endswith(".json")
                and not OTHER_FILES.search(entry.filename)
            ]
            if not entries:
                raise NotImportable(Problem.NO_CHATS)
            of_chatgpt = [entry for entry in entries if CHATGPT_FILE.search(entry.filename)]
            for entry in sorted(of_chatgpt or entries, key=lambda entry: entry.filename):
                with archive.open(entry) as unpacked:
                    yield from _chats_of_file(entry.filename, unpacked, budget)
    except NotImportable as problem:
        yield UploadedChat(name, problem=problem)
    except OSError:
        yield UploadedChat(name, problem=NotImportable(Problem.FILE_GONE))
    except ZIP_ERRORS:
        yield UploadedChat(name, problem=NotImportable(Problem.BAD_ZIP))


def _chats_of_file(name: str, file: IO[bytes], budget: "_Budget") -> Iterator[UploadedChat]:
    try:
        for value in json_stream.elements(_CountedFile(file, budget), budget.spend):
            if isinstance(value, NotImportable):
                yield UploadedChat(name, problem=value)
                continue
            try:
                chat = formats.read(value)
            except NotImportable as problem:
                yield UploadedChat(name, problem=problem)
            else:
                yield UploadedChat(name, chat)
    except json_stream.NotJson:
        yield UploadedChat(name, problem=NotImportable(Problem.NOT_JSON))
    except ZIP_ERRORS:
        yield UploadedChat(name, problem=NotImportable(Problem.BAD_ZIP))


class _ArchiveFile(io.BufferedReader):
    """A ZIP file that raises NotImportable before a large directory is parsed.

    `zipfile` reads the directory at once, with the size that the file claims, and creates an
    object for each entry in it.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise NotImportable(Problem.TOO_MANY_FILES)
        data = super().read(size)
        if data.startswith(DIRECTORY_ENTRY) and data.count(DIRECTORY_ENTRY) > MAX_ENTRIES:
            raise NotImportable(Problem.TOO_MANY_FILES)
        return data


class _Budget:
    """How much may still be unpacked and read."""

    def __init__(self) -> None:
        self.bytes_left = MAX_TOTAL_BYTES
        self._signs = MAX_SIGNS

    def spend(self, signs: int) -> None:
        """Count brackets and commas; raise LimitExceeded once there were too many."""
        self._signs -= signs
        if self._signs < 0:
            raise LimitExceeded(Problem.TOO_MUCH)


class _CountedFile:
    """A file that raises LimitExceeded once too much was read from it."""

    def __init__(self, file: IO[bytes], budget: _Budget) -> None:
        self._file = file
        self._budget = budget
        self._bytes_left = MAX_FILE_BYTES

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._bytes_left -= len(data)
        self._budget.bytes_left -= len(data)
        if min(self._bytes_left, self._budget.bytes_left) < 0:
            raise LimitExceeded(Problem.TOO_MUCH)
        return data
