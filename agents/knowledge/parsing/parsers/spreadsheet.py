"""Workbooks: XLSX, XLSM, XLSB, XLS and ODS."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any

from agents import file_types

from . import row_groups
from .archive import DAMAGED, FORBIDDEN_XML, Archive
from .office import macro_notes
from .sniffing import PROTECTED
from .values import ParsedDocument, ParsedPart, SourceFile, UnreadableDocument, WorkLimit

MAX_SHEETS = 200


def parse(source: SourceFile) -> ParsedDocument:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    notes = _check(source)
    try:
        book = CalamineWorkbook.from_filelike(BytesIO(source.data))
        names = book.sheet_names[:MAX_SHEETS]
        parts = []
        for number, name in enumerate(names, start=1):
            source.progress(number - 1, len(names))
            text, is_cut = row_groups.write(_rows(book, name, source.work))
            parts.append(ParsedPart(kind="sheet", number=number, label=name, text=text))
            if is_cut:
                notes.append(f"Only the first rows of the sheet {name!r} were read.")
    except PasswordError as error:
        raise UnreadableDocument(PROTECTED) from error
    except CalamineError as error:
        raise UnreadableDocument(DAMAGED) from error
    return ParsedDocument(title=source.stem, parts=parts, pages=len(names), notes=notes)


def _check(source: SourceFile) -> list[str]:
    """Check the unpacked size, and return a note about macros."""
    if source.data.startswith(file_types.OLE_MAGIC):
        return []
    archive = Archive(source.data, source.work)
    for name in archive.names:
        if name.endswith((".xml", ".rels")):
            _refuse_entities(archive.read(name))
    return macro_notes(archive)


def _refuse_entities(data: bytes) -> None:
    if b"<!DOCTYPE" in data[:4_000] or b"<!ENTITY" in data[:4_000]:
        raise UnreadableDocument(FORBIDDEN_XML)


def _rows(book: Any, name: str, work: WorkLimit) -> Iterator[list[str]]:
    sheet = book.get_sheet_by_name(name)
    # From the sheet's first row, so that numbers are those that a user sees.
    rows = sheet.to_python(skip_empty_area=False, nrows=row_groups.MAX_ROWS + 1)
    for row in rows:
        work.spend(len(row))
        yield [_format(value) for value in row]


def _format(value: Any) -> str:
    match value:
        case None | "":
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.10g}"
        case datetime():
            midnight = value.time() == time()
            return value.date().isoformat() if midnight else value.isoformat(" ", "minutes")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
    return str(value)
