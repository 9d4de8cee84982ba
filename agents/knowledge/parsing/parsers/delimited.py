"""CSV and TSV files."""

import csv
from io import StringIO

from agents.engine.sentences import Sentence as _

from . import plain, row_groups
from .values import ParsedDocument, ParsedPart, SourceFile, UnreadableDocument

DELIMITERS = ",;\t|"
SAMPLE_CHARS = 20_000
MAX_FIELD_CHARS = 1_000_000


def parse(source: SourceFile) -> ParsedDocument:
    text, notes = plain.read(source)
    sample = "\n".join(text[:SAMPLE_CHARS].split("\n")[:20])
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        rows = csv.reader(StringIO(text), delimiter=max(DELIMITERS, key=sample.count))
        table, is_cut = row_groups.write(rows)
    except csv.Error as error:
        raise UnreadableDocument(
            _("This CSV file can't be read: %(words)s.", words=error)
        ) from error
    if is_cut:
        notes.append(_("Only the first rows were read, because the file is very long."))
    part = ParsedPart(kind="sheet", label=source.stem, text=table)
    return ParsedDocument(title=source.stem, parts=[part], notes=notes)
