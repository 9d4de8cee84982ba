"""Reads files as text, in any of the usual encodings."""

import re
from pathlib import Path

from .parsing import UnreadableDocument
from .parsing.parsers.encoding import decode

MAX_BYTES = 5_000_000
SUFFIXES = (".md", ".markdown", ".txt")

__all__ = ["MAX_BYTES", "UnreadableDocument", "decode", "find_files", "read_file"]

CONTROL_CHARS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def find_files(folder: Path) -> list[Path]:
    """Return the documents in a folder and its subfolders."""
    paths = folder.rglob("*")
    return sorted(path for path in paths if path.suffix.lower() in SUFFIXES and path.is_file())


def read_file(path: Path) -> str:
    """Return the text of a file, with normalized line ends."""
    if path.is_dir():
        raise UnreadableDocument(f"There are no Markdown or text files in {str(path)!r}.")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableDocument(
                f"{str(path)!r} is larger than {MAX_BYTES // 1_000_000} MB."
            )
        text = decode(path.read_bytes())
    except OSError as error:
        raise UnreadableDocument(f"Can't read {str(path)!r}: {error.strerror}.") from error
    if text is None or CONTROL_CHARS.search(text):
        raise UnreadableDocument(f"{str(path)!r} isn't a text file.")
    return text.replace("\r\n", "\n").replace("\r", "\n")
