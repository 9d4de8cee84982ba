"""A structured answer as people see it: rows as a table, fields with their names."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.loop.output_schema import columns, is_number

MOST_ROWS = 200
MOST_NESTED = 6
MOST_VALUES = 5_000
MOST_JSON = 20_000
GROUPED = 10_000
NOTHING = "—"
FEW_ROWS = 5
# A text full of brackets is not looked through for each of them.
MOST_TRIES = 20
OPENING = re.compile(r"[\[{]")
DECODER = json.JSONDecoder()
RESULT = {"columns", "rows", "truncated"}

Kind = Literal["text", "number", "nothing", "list", "fields", "table", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Numbers below one another are written alike: with as many decimals, grouped or not."""

    name: str
    is_number: bool
    form: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """A value, or what it is made of; `more` says what of it is left out."""

    kind: Kind
    text: str = ""
    items: tuple["OutputView", ...] = ()
    fields: tuple[tuple[str, "OutputView"], ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple["OutputView", ...], ...] = ()
    caption: str = ""
    more: str = ""


def shown_output(value: Any) -> OutputView:
    """The value as it is shown; as JSON where it is more than anybody could read."""
    try:
        return _Shown().view(value, MOST_NESTED)
    except _TooMany:
        return _json(value)


def spoken(text: str) -> list[OutputView]:
    """A text as it is read: its words, and the rows that stand between them as tables."""
    parts, at = [], 0
    for start, end, rows in _tables(text):
        parts += [OutputView(kind="text", text=text[at:start].strip()), rows]
        at = end
    parts.append(OutputView(kind="text", text=text[at:].strip() if at else text))
    return [part for part in parts if part.kind == "table" or part.text]


def words(text: str) -> str:
    """The same on a line, where no table has room."""
    parts = (part.text if part.kind == "text" else "…" for part in spoken(text))
    return " ".join(parts)


def few_rows(text: str) -> OutputView | None:
    """The first rows of a text that is nothing but a table."""
    parts = spoken(text) if text.startswith(("{", "[")) else []
    if [part.kind for part in parts] != ["table"]:
        return None
    [whole] = parts
    more = _more(len(whole.rows), FEW_ROWS) or whole.more
    return replace(whole, rows=whole.rows[:FEW_ROWS], more=more)


def _tables(text: str) -> Iterator[tuple[int, int, OutputView]]:
    """Where rows begin and end in a text. Nothing of them is left out: it may be decided on."""
    at = 0
    for _try in range(MOST_TRIES):
        if (found := OPENING.search(text, at)) is None:
            return
        start = found.start()
        try:
            value, at = DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        view = _rows(value)
        if view is not None:
            yield start, at, view


def _rows(value: Any) -> OutputView | None:
    rows, is_cut = _as_objects(value)
    view = shown_output(rows)
    if view.kind != "table" or view.more:
        return None
    return replace(view, more=_("There are more rows than these.")) if is_cut else view


def _as_objects(value: Any) -> tuple[Any, bool]:
    """What a database gives, its columns told once, as a list of rows; and if it was cut."""
    if not isinstance(value, dict) or set(value) | {"truncated"} != RESULT:
        return value, False
    names, rows = value["columns"], value["rows"]
    is_named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_named or len(set(names)) != len(names) or not isinstance(rows, list):
        return value, False
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return value, False
    return [dict(zip(names, row, strict=True)) for row in rows], bool(value.get("truncated"))


class _TooMany(Exception):
    """A page of this would take long to make, and nobody would read it."""


class _Shown:
    """Makes the views of one value, and counts them."""

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def view(self, value: Any, levels: int) -> OutputView:
        if not isinstance(value, dict | list) or not value:
            return self._plain(value)
        if names := columns(value):
            return self._table(value, names)
        if levels == 0:
            return _json(value)
        return (
            self._fields(value, levels)
            if isinstance(value, dict)
            else self._list(value, levels)
        )

    def _plain(self, value: Any) -> OutputView:
        self.left -= 1
        if self.left < 0:
            raise _TooMany
        if value is None or value in ({}, [], ""):
            return OutputView(kind="nothing", text=NOTHING)
        if isinstance(value, bool):
            return OutputView(kind="text", text=_("Yes") if value else _("No"))
        if is_number(value):
            return OutputView(kind="number", text=json.dumps(value))
        return OutputView(kind="text", text=value)

    def _fields(self, value: Mapping[str, Any], levels: int) -> OutputView:
        some = list(value.items())[:MOST_ROWS]
        fields = tuple((name, self.view(item, levels - 1)) for name, item in some)
        return OutputView(kind="fields", fields=fields, more=_more(len(value)))

    def _list(self, value: Sequence[Any], levels: int) -> OutputView:
        items = tuple(self.view(item, levels - 1) for item in value[:MOST_ROWS])
        return OutputView(kind="list", items=items, more=_more(len(value)))

    def _table(self, value: Sequence[Mapping[str, Any]], names: Sequence[str]) -> OutputView:
        rows, count = value[:MOST_ROWS], len(value)
        heads = tuple(_column(name, rows) for name in names)
        caption = ngettext("Table of %(count)d row", "Table of %(count)d rows", count)
        return OutputView(
            kind="table",
            columns=heads,
            rows=tuple(tuple(self._cell(row, head) for head in heads) for row in rows),
            caption=caption % {"count": count},
            more=_more(count),
        )

    def _cell(self, row: Mapping[str, Any], column: Column) -> OutputView:
        """Nothing stands in line with the numbers above and below it."""
        value = row.get(column.name)
        view = self._plain(value)
        if not column.is_number:
            return view
        text = view.text if value is None else format(value, column.form)
        return replace(view, kind="number", text=text)


def _column(name: str, rows: Sequence[Mapping[str, Any]]) -> Column:
    values = [row[name] for row in rows if row.get(name) is not None]
    are_numbers = bool(values) and all(map(is_number, values))
    return Column(name=name, is_number=are_numbers, form=_form(values) if are_numbers else "")


def _form(numbers: Sequence[int | float]) -> str:
    """Grouped from ten thousand on: a year is not."""
    written = [repr(number) for number in numbers]
    grouped = "," if any(abs(number) >= GROUPED for number in numbers) else ""
    if any("e" in number for number in written):
        return grouped  # very large or very small: as they are
    decimals = max(len(number.partition(".")[2].rstrip("0")) for number in written)
    return f"{grouped}.{decimals}f"


def _json(value: Any) -> OutputView:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    left_out = max(0, len(text) - MOST_JSON)
    more = _("%(count)d characters left out") % {"count": left_out} if left_out else ""
    return OutputView(kind="json", text=text[:MOST_JSON], more=more)


def _more(count: int, most: int = MOST_ROWS) -> str:
    left_out = max(0, count - most)
    words = ngettext("… and %(count)d more", "… and %(count)d more", left_out)
    return words % {"count": left_out} if left_out else ""
