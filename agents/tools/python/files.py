"""The folder of a call: the chat's files in it before, and what the code wrote into it."""

import csv
import io
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath
from shutil import copyfileobj
from typing import IO, Any

from agents import file_types
from agents.engine.attachments import format_size
from agents.engine.sentences import Sentence as _
from agents.engine.text import FORMULA
from agents.engine.tool import IMAGE_TYPES, Attachment

MAX_CHAT_FILES = 20
MAX_CHAT_BYTES = 100_000_000
# Less than the 255 that file systems take, with a number for a second file of the name.
MAX_STEM_BYTES = 180
MAX_SUFFIX_BYTES = 60
MAX_FILES = 10
MAX_CHECKED_FILES = 20  # a check of a picture can take as long as the code
MAX_FILE_BYTES = 5_000_000
# While the code runs: more than that is written only to fill the disk.
MAX_ENTRIES = 200
MAX_FOLDER_BYTES = 60_000_000
TEXT_TYPES = {
    file_types.TEXT,
    "text/csv",
    "text/tab-separated-values",
    "text/markdown",
    "application/json",
    "application/jsonl",
}
SVG = "image/svg+xml"
TABLE_DELIMITERS = {"text/csv": ",", "text/tab-separated-values": "\t"}
# Nothing in it is tried twice: a cell can be very long, and a match stops all threads.
NUMBER = re.compile(
    r"\s*+[-+]?(?:\d[\d,_ ]*+)?+(?:\.\d*+)?+(?:e[-+]?+\d++)?+\s*+%?+\s*+", re.IGNORECASE
)
IMAGE_ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}

# Takes an image's name, bytes and type, and returns what is saved and its type.
FileCheck = Callable[[str, bytes, str], tuple[bytes, str]]


class FileRejected(Exception):
    """Raised by a check, with the reason."""


class FolderTooLarge(Exception):
    """Raised while the code runs, to end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFile:
    """A file of the chat that the code can open by its name."""

    name: str
    size: int
    open: Callable[[], IO[Any]]


class CodeFolder:
    """The folder that the code runs in, and one for temporary files of packages."""

    def __init__(self, parent: Path) -> None:
        self.path = parent / "files"
        self.temporary = parent / "temporary"
        self.path.mkdir()
        self.temporary.mkdir()
        self._digests: dict[str, str] = {}  # of the chat's files
        self._chat_bytes = 0

    def add(self, files: Iterable[ChatFile]) -> list[str]:
        """Copy the chat's files into it; return a note for each that isn't there."""
        notes: list[str] = []
        for file in files:
            name = self._free_name(file.name)
            if len(self._digests) >= MAX_CHAT_FILES:
                notes.append(_("[%(name)s: left out, as there are too many files]", name=name))
            elif self._chat_bytes + file.size > MAX_CHAT_BYTES:
                notes.append(_("[%(name)s: left out, as it is too large]", name=name))
            else:
                try:
                    with file.open() as source, (self.path / name).open("wb") as target:
                        copyfileobj(source, target)
                except OSError:
                    (self.path / name).unlink(missing_ok=True)
                    notes.append(_("[%(name)s: left out, as it can't be read]", name=name))
                    continue
                self._chat_bytes += file.size
                self._digests[name] = sha256((self.path / name).read_bytes()).hexdigest()
        return notes

    def check_size(self) -> None:
        """Raise FolderTooLarge if the code has written more than it may."""
        used_bytes = 0
        count = 0
        for folder in (self.path, self.temporary):
            with os.scandir(folder) as entries:
                for entry in entries:
                    count += 1
                    with suppress(OSError):  # deleted meanwhile
                        used_bytes += entry.stat(follow_symlinks=False).st_size
                    if count > MAX_ENTRIES or used_bytes > self._max_bytes:
                        raise FolderTooLarge

    def written_files(self, check: FileCheck) -> tuple[list[Attachment], list[str]]:
        """Return what the code wrote, and a note for each file that is left out."""
        attachments: list[Attachment] = []
        notes: list[str] = []
        for number, (name, data) in enumerate(self._contents()):
            shown_name = clean_name(name)
            try:
                if len(attachments) >= MAX_FILES or number >= MAX_CHECKED_FILES:
                    raise FileRejected(_("only %(limit)s files are saved", limit=MAX_FILES))
                attachments.append(_checked(shown_name, data, check))
            except FileRejected as error:
                notes.append(
                    _("[%(name)s: not saved: %(reason)s]", name=shown_name, reason=error)
                )
        # What can be seen first.
        return sorted(attachments, key=lambda file: file.kind != "image"), notes

    def _contents(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield new and changed files by name, without bytes if it isn't a usable file."""
        for name in sorted(os.listdir(self.path))[:MAX_ENTRIES]:
            # Links can make one of the chat's large files many.
            max_bytes = MAX_CHAT_BYTES if name in self._digests else MAX_FILE_BYTES + 1
            data = _read(self.path / name, max_bytes)
            if data is None or sha256(data).hexdigest() != self._digests.get(name):
                yield name, data

    @property
    def _max_bytes(self) -> int:
        return MAX_FOLDER_BYTES + self._chat_bytes

    def _free_name(self, name: str) -> str:
        cleaned = clean_name(name)
        path = PurePath(cleaned)
        number = 1
        while cleaned in self._digests:
            number += 1
            cleaned = f"{path.stem} ({number}){path.suffix}"
        return cleaned


def clean_name(name: str) -> str:
    """Return a file's name without folders and invisible characters."""
    last = name.replace("\\", "/").rpartition("/")[2]
    visible = "".join(c if c.isprintable() else " " for c in last)
    path = PurePath(" ".join(visible.split()).strip(". ") or "file")
    stem = path.stem.encode()[:MAX_STEM_BYTES].decode(errors="ignore")
    return stem + path.suffix.encode()[:MAX_SUFFIX_BYTES].decode(errors="ignore")


def _read(path: Path, max_bytes: int) -> bytes | None:
    """Return the first bytes of a regular file; None for a link and a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return file.read(max_bytes) if is_regular else None


def _checked(name: str, data: bytes | None, check: FileCheck) -> Attachment:
    """Return a file as an attachment; raise FileRejected."""
    if data is None:
        raise FileRejected(_("not a regular file"))
    if len(data) > MAX_FILE_BYTES:
        limit = format_size(MAX_FILE_BYTES)
        raise FileRejected(_("too large to save (limit %(limit)s)", limit=limit))
    mime_type = file_types.refine(file_types.sniff(io.BytesIO(data)), name)
    if mime_type in IMAGE_TYPES or mime_type == SVG:
        content, checked_type = check(name, data, mime_type)
        if checked_type != mime_type:
            name = str(PurePath(name).with_suffix(IMAGE_ENDINGS.get(checked_type, "")))
        return Attachment(data=content, mime_type=checked_type, name=name)
    if mime_type not in TEXT_TYPES:
        raise FileRejected(_("only images, SVG, CSV, JSON and text are saved"))
    if mime_type in TABLE_DELIMITERS:
        data = without_formulas(data, TABLE_DELIMITERS[mime_type])
    return Attachment(data=data, mime_type=mime_type, name=name)


def without_formulas(data: bytes, delimiter: str) -> bytes:
    """Return a table in which a spreadsheet runs no cell as a formula, as in our exports."""
    try:
        text = data.decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error):
        raise FileRejected(_("not a CSV file in UTF-8")) from None
    if not any(_is_formula(cell) for row in rows for cell in row):
        return data
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerows(
        [f"'{cell}" if _is_formula(cell) else cell for cell in row] for row in rows
    )
    return buffer.getvalue().encode()


def _is_formula(cell: str) -> bool:
    return FORMULA.match(cell) is not None and NUMBER.fullmatch(cell) is None
