"""Workbooks: XLSX, XLSM, XLSB, XLS and ODS."""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from agents import file_types
from agents.engine.sentences import Sentence as _

from . import markdown, row_groups
from .archive import DAMAGED, FORBIDDEN_XML, Archive
from .charts import chart_tables
from .office import local_name, macro_notes
from .values import (
    PROTECTED,
    ParsedDocument,
    ParsedPart,
    SourceFile,
    UnreadableDocument,
    WorkLimit,
)

MAX_SHEETS = 200
# A cell's attributes, its formula if it has one, and its value.
CELL = re.compile(
    rb"<c\b([^<>]*)>(\s*(?:<f\b[^<>]*(?:/>|>[^<]*</f>)\s*)?)<v\b[^<>]*>([^<]*)</v>"
)
CELL_KIND = re.compile(rb"""\st\s*=\s*["'](\w*)["']""")
NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def parse(source: SourceFile) -> ParsedDocument:
    from python_calamine import CalamineError, PasswordError

    if source.data.startswith(file_types.OLE_MAGIC):
        archive = None
        document = ParsedDocument(title=source.stem)
        charts = {}
    else:
        archive = Archive(source.data, source.work)
        for name in archive.names:
            if name.endswith((".xml", ".rels")):
                start = archive.read(name)[:4_000]
                if b"<!DOCTYPE" in start or b"<!ENTITY" in start:
                    raise UnreadableDocument(FORBIDDEN_XML)
        document = ParsedDocument(title=source.stem, notes=macro_notes(archive))
        charts = _charts(archive)
    try:
        try:
            _read_sheets(source.data, source, document, charts)
        except CalamineError:
            if archive is None:
                raise
            _read_sheets(_with_valid_numbers(archive), source, document, charts)
    except PasswordError as error:
        raise UnreadableDocument(PROTECTED) from error
    except CalamineError as error:
        raise UnreadableDocument(DAMAGED) from error
    return document


def _read_sheets(
    data: bytes, source: SourceFile, document: ParsedDocument, charts: Mapping[str, str]
) -> None:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_filelike(BytesIO(data))
    names = book.sheet_names[:MAX_SHEETS]
    parts: list[ParsedPart] = []
    notes: list[str] = []
    for number, name in enumerate(names, start=1):
        source.progress(number - 1, len(names))
        text, is_cut = row_groups.write(_rows(book, name, source.work))
        text = markdown.join([text, charts.get(name, "")])
        parts.append(ParsedPart(kind="sheet", number=number, label=name, text=text))
        if is_cut:
            notes.append(
                _("Only the first rows of the sheet %(words)s were read.", words=repr(name))
            )
    document.parts = parts
    document.pages = len(names)
    document.notes += notes


def _with_valid_numbers(archive: Archive) -> bytes:
    """Return the workbook without spaces around numbers, and with text in cells of text.

    Excel reads such files, which other programs write; calamine refuses them.
    """

    def corrected(match: re.Match[bytes]) -> bytes:
        attributes, formula, value = match.groups()
        kind = CELL_KIND.search(attributes)
        if kind is not None and kind[1] != b"n":
            return match[0]
        if not NUMBER.fullmatch(value.strip()):
            attributes = CELL_KIND.sub(b"", attributes) + b' t="str"'
        return b"<c%s>%s<v>%s</v>" % (attributes, formula, value.strip())

    buffer = BytesIO()
    with ZipFile(buffer, "w") as workbook:
        for name in archive.names:
            data = archive.read(name)
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                data = CELL.sub(corrected, data)
            workbook.writestr(name, data)
    return buffer.getvalue()


def _charts(archive: Archive) -> dict[str, str]:
    """Return the figures of the charts of each sheet, by its name."""
    workbook = "xl/workbook.xml"
    if workbook not in archive.names:
        return {}
    charts: dict[str, str] = {}
    targets = archive.relationships(workbook)
    for element in archive.xml(workbook).iter():
        if local_name(element) != "sheet" or len(charts) >= MAX_SHEETS:
            continue
        keys = (value for key, value in element.attrib.items() if key.endswith("}id"))
        _kind, sheet = targets.get(next(keys, ""), ("", ""))
        drawings = archive.relationships(sheet).values() if sheet in archive.names else ()
        blocks = [
            block
            for kind, target in drawings
            if kind == "drawing" and target in archive.names
            for block in chart_tables(archive, target)
        ]
        charts[element.get("name", "")] = markdown.join(blocks)
    return charts


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
        case float() if 1e3 <= abs(value) < 1e15:  # such as amounts with their cents
            return f"{value:.6f}".rstrip("0").rstrip(".")
        case float():
            return f"{value:.10g}"
        case datetime():
            if value.time() == time():
                return value.date().isoformat()
            return value.isoformat(" ", "seconds" if value.second else "minutes")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
    return str(value)
