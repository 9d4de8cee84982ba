"""Reads files as text, in any of the usual encodings."""

import codecs
import re
from pathlib import Path

from .retrieval.tokenizer import KANA

MAX_BYTES = 5_000_000
SUFFIXES = (".md", ".markdown", ".txt")

BOM_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
CONTROL_CHARS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


class UnreadableDocument(ValueError):
    """Raised when a file can't be read as a document."""


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


def decode(data: bytes) -> str | None:
    """Decode bytes, or return None if no known encoding fits."""
    for mark, encoding in BOM_ENCODINGS.items():
        if data.startswith(mark):
            return _decode_as(encoding, data)
    if (text := _decode_as("utf-8", data)) is not None:
        return text
    # Hardly any Shift_JIS is also valid EUC-JP, so that comes first. Western text has no kana
    # and only few accents.
    is_dense = sum(byte > 127 for byte in data) * 3 > len(data)
    readings = (_decode_as(encoding, data) for encoding in ("euc_jp", "cp932"))
    japanese = (text for text in readings if text and (is_dense or KANA.search(text)))
    return next(japanese, None) or _decode_as("cp1252", data)


def _decode_as(encoding: str, data: bytes) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None
