"""Loads tables into an SQLite file, in its own confined process.

Started by path with an empty environment. It reads one JSON request from standard input:
`target`, and `files` with their path, name and type. The reply is one JSON object.
"""

import csv
import io
import json
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date, datetime, time, timedelta
from pathlib import PurePath
from typing import Any
from unicodedata import normalize

MAX_ROWS = 500_000
MAX_COLUMNS = 200
MAX_SHEETS = 20
MAX_CELL_CHARS = 10_000
SAMPLE_ROWS = 2_000
ENCODINGS = ("utf-8-sig", "cp932", "euc_jp", "latin-1")
DELIMITERS = ",;\t|"
INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[+-]?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,3})?")
GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")

Row = list[Any]


def main() -> dict[str, Any]:
    request = json.loads(sys.stdin.buffer.read())
    notes: list[str] = []
    names: set[str] = set()
    with closing(sqlite3.connect(request["target"], isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        for file in request["files"]:
            try:
                for label, rows in _tables(file):
                    _load(connection, _unique(label, names), rows, notes)
            except (ValueError, OSError, csv.Error, UnicodeError) as error:
                notes.append(f"{file['name']} can't be queried: {error}.")
        connection.execute("COMMIT")
    return {"notes": notes, "tables": sorted(names)}


def _tables(file: dict[str, str]) -> Iterator[tuple[str, Iterator[Row]]]:
    stem = PurePath(file["name"]).stem
    if file["type"] in {"text/csv", "text/tab-separated-values", "text/plain"}:
        yield stem, _csv_rows(file["path"])
        return
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_path(file["path"])
        sheets = book.sheet_names[:MAX_SHEETS]
        for name in sheets:
            label = f"{stem}_{name}" if len(book.sheet_names) > 1 else stem
            yield label, iter(book.get_sheet_by_name(name).to_python(skip_empty_area=True))
    except CalamineError as error:
        raise ValueError(str(error)) from error


def _csv_rows(path: str) -> Iterator[Row]:
    csv.field_size_limit(1_000_000)
    with open(path, "rb") as file:
        data = file.read()
    encodings = ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ENCODINGS
    for encoding in encodings:
        try:
            text = data.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise ValueError("its encoding is unknown")
    delimiter = max(DELIMITERS, key=text[:20_000].count)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def _load(
    connection: sqlite3.Connection, table: str, rows: Iterable[Row], notes: list[str]
) -> None:
    source = (row for row in rows if any(cell not in ("", None) for cell in row))
    header = next(source, None)
    if header is None:
        return
    sample = [row for _, row in zip(range(SAMPLE_ROWS), source, strict=False)]
    width = min(MAX_COLUMNS, max(map(len, [header, *sample])))
    names: set[str] = set()
    kinds: list[str] = []
    columns: list[str] = []
    for index in range(width):
        title = _text(header[index]) if index < len(header) else ""
        name = _unique(title or f"column_{index + 1}", names)
        kind = _kind([row[index] for row in sample if index < len(row)])
        kinds.append(kind)
        columns.append(f'"{name}" {kind}')
    connection.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
    placeholders = ", ".join("?" * width)
    insert = f'INSERT INTO "{table}" VALUES ({placeholders})'
    count = 0
    for chunk in (sample, source):
        for row in chunk:
            if count >= MAX_ROWS:
                notes.append(f"{table} has only the first {MAX_ROWS:,} rows.")
                return
            values = [
                _value(row[index] if index < len(row) else None, kinds[index])
                for index in range(width)
            ]
            connection.execute(insert, values)
            count += 1


def _unique(label: str, names: set[str]) -> str:
    """Return a name that SQL can quote, and that isn't taken in any case."""
    composed = normalize("NFC", _text(label))
    plain = re.sub(r"[^\w ]+", "_", composed).strip("_ ")[:60] or "table"
    plain = f"_{plain}" if plain.lower().startswith("sqlite") else plain
    used_names = {used_name.casefold() for used_name in names}
    name = plain
    number = 2
    while name.casefold() in used_names:
        name = f"{plain}_{number}"
        number += 1
    names.add(name)
    return name


def _kind(values: list[Any]) -> str:
    filled = [value for value in values if value not in ("", None)]
    if not filled:
        return "TEXT"
    if all(_is_integer(value) for value in filled):
        return "INTEGER"
    return "REAL" if all(_is_number(value) for value in filled) else "TEXT"


def _is_integer(value: Any) -> bool:
    if isinstance(value, (bool, int)):
        return True
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 2**53
    text = str(value).strip()
    return bool(INTEGER.fullmatch(text) or (GROUPED.fullmatch(text) and "." not in text))


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, int, float)):
        return True
    text = str(value).strip()
    # 007 and 0123 are codes, not numbers.
    has_zero = len(text) > 1 and text[0] == "0" and text[1].isdigit()
    return not has_zero and bool(NUMBER.fullmatch(text) or GROUPED.fullmatch(text))


def _value(value: Any, kind: str) -> Any:
    if value is None or value == "":
        return None
    if kind == "TEXT" or not _is_number(value):
        return _text(value)
    number = float(str(value).replace(",", "").strip()) if isinstance(value, str) else value
    return int(number) if kind == "INTEGER" else float(number)


def _text(value: Any) -> str:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    return " ".join(text.split()) if len(text) < 200 else text[:MAX_CELL_CHARS]


if __name__ == "__main__":
    try:
        reply = main()
    except Exception as error:  # the tables are left out, and the run goes on
        reply = {"notes": [f"The tables can't be queried: {error}."], "tables": []}
    sys.stdout.write(json.dumps(reply))
