"""A structured answer for display: tables and named fields."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.loop import is_number, table_columns, write_number

MAX_ROWS = 200
MAX_DEPTH = 6
MAX_VALUES = 5_000
MAX_JSON_CHARS = 20_000
GROUPING_MIN = 10_000
DASH = "—"
PREVIEW_ROWS = 5
# Limits decoding in text with many brackets.
MAX_DECODE_ATTEMPTS = 20
OPENING_BRACKET = re.compile(r"[\[{]")
DECODER = json.JSONDecoder()
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RESULT_KEYS = {"columns", "rows", "truncated"}

OutputKind = Literal["text", "number", "nothing", "list", "fields", "table", "report", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """A column; its numbers have the same decimals and grouping."""

    name: str
    label: str
    is_number: bool
    form: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """A value or its parts; `omission` says what is omitted."""

    kind: OutputKind
    text: str = ""
    items: tuple["OutputView", ...] = ()
    fields: tuple[tuple[str, "OutputView"], ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    rows: tuple[tuple["OutputView", ...], ...] = ()
    caption: str = ""
    omission: str = ""


def build_output_view(value: Any, *, is_literal: bool = False) -> OutputView:
    """Return the view of a value; as JSON if it is too large to read.

    Names of fields become headings, unless they are to be displayed as they are.
    """
    try:
        return _OutputBuilder(str if is_literal else field_label).view(value, MAX_DEPTH)
    except _TooManyValues:
        return _json_view(value)


def field_label(name: str) -> str:
    """Return a field's name as a heading: Unit price for unit_price and unitPrice."""
    if not IDENTIFIER.fullmatch(name) or name.isupper():
        return name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").split()
    return " ".join(words).lower().capitalize() or name


def split_tables(text: str) -> list[OutputView]:
    """Split a text into plain text and the tables in it.

    Nothing is omitted, because it may be up for approval.
    """
    views: list[OutputView] = []
    position = 0
    table_end = 0
    for _try in range(MAX_DECODE_ATTEMPTS):
        if (bracket := OPENING_BRACKET.search(text, position)) is None:
            break
        start = bracket.start()
        try:
            value, position = DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        rows, is_cut = _to_objects(value)
        table = build_output_view(rows, is_literal=True)
        if table.kind != "table" or table.omission:
            continue
        if is_cut:
            table = replace(table, omission=_("The result was truncated. More rows exist."))
        views += [OutputView(kind="text", text=text[table_end:start].strip()), table]
        table_end = position
    remaining_text = text[table_end:].strip() if table_end else text
    views.append(OutputView(kind="text", text=remaining_text))
    return [view for view in views if view.kind == "table" or view.text]


def inline_text(text: str) -> str:
    """Return the text on one line, without tables."""
    return " ".join(view.text if view.kind == "text" else "…" for view in split_tables(text))


def table_preview(text: str) -> OutputView | None:
    """Return the first rows of a text that is only a table."""
    views = split_tables(text) if text.startswith(("{", "[")) else []
    if [view.kind for view in views] != ["table"]:
        return None
    [table] = views
    omission = _omission_label(len(table.rows), PREVIEW_ROWS) or table.omission
    return replace(table, rows=table.rows[:PREVIEW_ROWS], omission=omission)


def _to_objects(value: Any) -> tuple[Any, bool]:
    """Convert a database result to a list of rows; also return if it was truncated."""
    if not isinstance(value, dict) or set(value) | {"truncated"} != RESULT_KEYS:
        return value, False
    names = value["columns"]
    rows = value["rows"]
    is_named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_named or len(set(names)) != len(names) or not isinstance(rows, list):
        return value, False
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return value, False
    return [dict(zip(names, row, strict=True)) for row in rows], bool(value.get("truncated"))


class _TooManyValues(Exception):
    """Raised when a value is too large to render or read."""


class _OutputBuilder:
    """Builds the views of one value, and counts them."""

    def __init__(self, label: Callable[[str], str]) -> None:
        self.left = MAX_VALUES
        self.label = label

    def view(self, value: Any, levels: int) -> OutputView:
        if not isinstance(value, dict | list) or not value:
            return self._scalar(value)
        if isinstance(value, list) and (names := table_columns(value)):
            return self._table(value, names)
        if levels == 0:
            return _json_view(value)
        omission = _omission_label(len(value))
        if isinstance(value, list):
            items = tuple(self.view(item, levels - 1) for item in value[:MAX_ROWS])
            return OutputView(kind="list", items=items, omission=omission)
        views = {
            name: self.view(item, levels - 1) for name, item in islice(value.items(), MAX_ROWS)
        }
        tables = [name for name, view in views.items() if view.kind == "table"]
        title = value.get("title")
        if levels == MAX_DEPTH and len(tables) == 1 and title and isinstance(title, str):
            return self._report(title, views, tables[0])
        fields = tuple((self.label(name), view) for name, view in views.items())
        return OutputView(kind="fields", fields=fields, omission=omission)

    def _scalar(self, value: Any) -> OutputView:
        self.left -= 1
        if self.left < 0:
            raise _TooManyValues
        if value is None or value in ({}, [], ""):
            return OutputView(kind="nothing", text=DASH)
        if isinstance(value, bool):
            return OutputView(kind="text", text=_("Yes") if value else _("No"))
        if is_number(value):
            return OutputView(kind="number", text=write_number(value))
        return OutputView(kind="text", text=value)

    def _report(self, title: str, views: dict[str, OutputView], table: str) -> OutputView:
        """Return a table under its title; a note needs no heading, other fields have one."""
        others = {name: view for name, view in views.items() if name not in ("title", table)}
        note = others.pop("note", OutputView(kind="nothing"))
        fields = tuple((self.label(name), view) for name, view in others.items())
        items = [views[table]]
        if fields:
            items.append(OutputView(kind="fields", fields=fields))
        if note.kind != "nothing":
            items.append(note)
        return OutputView(kind="report", text=title, items=tuple(items))

    def _table(self, value: Sequence[Mapping[str, Any]], names: Sequence[str]) -> OutputView:
        rows = value[:MAX_ROWS]
        count = len(value)
        columns = tuple(_build_column(name, self.label(name), rows) for name in names)
        caption = ngettext("Table with %(count)d row", "Table with %(count)d rows", count)
        return OutputView(
            kind="table",
            columns=columns,
            rows=tuple(tuple(self._cell(row, column) for column in columns) for row in rows),
            caption=caption % {"count": count},
            omission=_omission_label(count),
        )

    def _cell(self, row: Mapping[str, Any], column: OutputColumn) -> OutputView:
        """Return a cell, with empty ones aligned to the numbers."""
        value = row.get(column.name)
        view = self._scalar(value)
        if not column.is_number:
            return view
        text = view.text if value is None else format(value, column.form)
        return replace(view, kind="number", text=text)


def _build_column(name: str, label: str, rows: Sequence[Mapping[str, Any]]) -> OutputColumn:
    values = [row[name] for row in rows if row.get(name) is not None]
    if not values or not all(map(is_number, values)):
        return OutputColumn(name=name, label=label, is_number=False)
    # Grouped from 10,000 on, so that years aren't.
    form = "," if any(abs(number) >= GROUPING_MIN for number in values) else ""
    digits = [repr(number) for number in values]
    # Very large or very small numbers are unformatted.
    if not any("e" in number for number in digits):
        decimals = max(len(number.partition(".")[2].rstrip("0")) for number in digits)
        form += f".{decimals}f"
    return OutputColumn(name=name, label=label, is_number=True, form=form)


def _json_view(value: Any) -> OutputView:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    omitted = max(0, len(text) - MAX_JSON_CHARS)
    omission = _("%(count)d characters omitted") % {"count": omitted} if omitted else ""
    return OutputView(kind="json", text=text[:MAX_JSON_CHARS], omission=omission)


def _omission_label(count: int, max_count: int = MAX_ROWS) -> str:
    omitted = max(0, count - max_count)
    template = ngettext("… and %(count)d more", "… and %(count)d more", omitted)
    return template % {"count": omitted} if omitted else ""
