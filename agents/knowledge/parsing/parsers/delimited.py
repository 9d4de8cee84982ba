"""CSV and TSV files."""

import csv
from collections.abc import Iterator
from io import StringIO

from . import plain, row_groups
from .values import ParsedDocument, ParsedPart, SourceFile, UnreadableDocument

DELIMITERS = ",;\t|"
SAMPLE_CHARS = 20_000
MAX_FIELD_CHARS = 1_000_000


def parse(source: SourceFile) -> ParsedDocument:
    text, notes = plain.read(source)
    table, is_cut = row_groups.write(_rows(text))
    if is_cut:
        notes.append("Only the first rows were read, because the file is very long.")
    part = ParsedPart(kind="sheet", label=source.stem, text=table)
    return ParsedDocument(title=source.stem, parts=[part], notes=notes)


def _rows(text: str) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        yield from csv.reader(StringIO(text), delimiter=_delimiter(text[:SAMPLE_CHARS]))
    except csv.Error as error:
        raise UnreadableDocument(f"This CSV file can't be read: {error}.") from error


def _delimiter(sample: str) -> str:
    """Return the delimiter that occurs most, outside of quotes, on the first lines."""
    lines = sample.split("\n")[:20]
    counts = {mark: sum(line.count(mark) for line in lines) for mark in DELIMITERS}
    return max(counts, key=lambda mark: counts[mark])
