"""A structured answer for display: tables and named fields."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """A value or its parts; `more` says what is omitted."""

    kind: OutputKind
    text: str = ""
    items: tuple["OutputView", ...] = ()
    fields: tuple[tuple[str, "OutputView"], ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    rows: tuple[tuple["OutputView", ...], ...] = ()
    caption: str = ""
    more: str = ""


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
    """Split a text into plain text and the tables in it."""
    parts, at = [], 0
    for start, end, rows in _find_tables(text):
        parts += [OutputView(kind="text", text=text[at:start].strip()), rows]
        at = end
    parts.append(OutputView(kind="text", text=text[at:].strip() if at else text))
    return [part for part in parts if part.kind == "table" or part.text]


def inline_text(text: str) -> str:
    """Return the text on one line, without tables."""
    parts = (part.text if part.kind == "text" else "…" for part in split_tables(text))
    return " ".join(parts)


def table_preview(text: str) -> OutputView | None:
    """Return the first rows of a text that is only a table."""
    parts = split_tables(text) if text.startswith(("{", "[")) else []
    if [part.kind for part in parts] != ["table"]:
        return None
    [whole] = parts
    more = _more_label(len(whole.rows), PREVIEW_ROWS) or whole.more
    return replace(whole, rows=whole.rows[:PREVIEW_ROWS], more=more)


def _find_tables(text: str) -> Iterator[tuple[int, int, OutputView]]:
    """Yield the tables in a text. Nothing is omitted, because it may be up for approval."""
    at = 0
    for _try in range(MAX_DECODE_ATTEMPTS):
        if (bracket := OPENING_BRACKET.search(text, at)) is None:
            return
        start = bracket.start()
        try:
            value, at = DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        view = _table_view(value)
        if view is not None:
            yield start, at, view


def _table_view(value: Any) -> OutputView | None:
    rows, is_cut = _to_objects(value)
    view = build_output_view(rows, is_literal=True)
    if view.kind != "table" or view.more:
        return None
    return (
        replace(view, more=_("The result was truncated. More rows exist.")) if is_cut else view
    )


def _to_objects(value: Any) -> tuple[Any, bool]:
    """Convert a database result to a list of rows; also return if it was truncated."""
    if not isinstance(value, dict) or set(value) | {"truncated"} != RESULT_KEYS:
        return value, False
    names, rows = value["columns"], value["rows"]
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
        return (
            self._fields(value, levels)
            if isinstance(value, dict)
            else self._list(value, levels)
        )

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

    def _fields(self, value: Mapping[str, Any], levels: int) -> OutputView:
        items = list(value.items())[:MAX_ROWS]
        views = {name: self.view(item, levels - 1) for name, item in items}
        tables = [name for name, view in views.items() if view.kind == "table"]
        title = value.get("title")
        if levels == MAX_DEPTH and len(tables) == 1 and title and isinstance(title, str):
            return self._report(title, views, tables[0])
        fields = tuple((self.label(name), view) for name, view in views.items())
        return OutputView(kind="fields", fields=fields, more=_more_label(len(value)))

    def _report(self, title: str, views: dict[str, OutputView], table: str) -> OutputView:
        """Return a table under its title; a note needs no heading, other fields have one."""
        rest = {name: view for name, view in views.items() if name not in ("title", table)}
        note = rest.pop("note", OutputView(kind="nothing"))
        fields = tuple((self.label(name), view) for name, view in rest.items())
        items = [views[table]]
        if fields:
            items.append(OutputView(kind="fields", fields=fields))
        if note.kind != "nothing":
            items.append(note)
        return OutputView(kind="report", text=title, items=tuple(items))

    def _list(self, value: Sequence[Any], levels: int) -> OutputView:
        items = tuple(self.view(item, levels - 1) for item in value[:MAX_ROWS])
        return OutputView(kind="list", items=items, more=_more_label(len(value)))

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
            more=_more_label(count),
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
    are_numbers = bool(values) and all(map(is_number, values))
    form = _number_format(values) if are_numbers else ""
    return OutputColumn(name=name, label=label, is_number=are_numbers, form=form)


def _number_format(numbers: Sequence[int | float]) -> str:
    """Return the format of a column; grouped from 10,000 on, so that years aren't."""
    written = [repr(number) for number in numbers]
    grouped = "," if any(abs(number) >= GROUPING_MIN for number in numbers) else ""
    if any("e" in number for number in written):
        return grouped  # very large or very small: unformatted
    decimals = max(len(number.partition(".")[2].rstrip("0")) for number in written)
    return f"{grouped}.{decimals}f"


def _json_view(value: Any) -> OutputView:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    left_out = max(0, len(text) - MAX_JSON_CHARS)
    more = _("%(count)d characters omitted") % {"count": left_out} if left_out else ""
    return OutputView(kind="json", text=text[:MAX_JSON_CHARS], more=more)


def _more_label(count: int, most: int = MAX_ROWS) -> str:
    left_out = max(0, count - most)
    template = ngettext("… and %(count)d more", "… and %(count)d more", left_out)
    return template % {"count": left_out} if left_out else ""
