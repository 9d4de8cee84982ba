"""The tables that a database tool describes, and what their columns are good for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

MONEY = ("amount", "total", "revenue", "sales", "value", "paid")
PRICE = ("price", "cost", "fee", "salary", "rate")
QUANTITY = ("quantity", "qty", "units", "pieces")
LABELS = ("name", "title", "label", "subject")
PLACES = ("city", "country", "region", "state", "prefecture", "town")

_TABLE = re.compile(r"^[\s*`-]*(\w+)`?\s*\((.+)\)[\s`;.]*$")
_COLUMN = re.compile(r"[`\"]?(\w+)[`\"]?\s*(\w*)")
_REFERENCE = re.compile(
    r"(?:→|->|references)\s*[`\"]?(\w+)[`\"]?(?:\s*[.(]\s*[`\"]?(\w+))?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    table: str
    name: str
    type: str = ""
    reference: tuple[str, str] | None = None

    @property
    def words(self) -> list[str]:
        return self.name.lower().split("_")

    @property
    def is_key(self) -> bool:
        return self.reference is not None or self.words[-1] == "id"

    @property
    def is_number(self) -> bool:
        kinds = ("INT", "REAL", "NUM", "DEC", "FLOA", "DOUB", "MONEY")
        return self.type.upper().startswith(kinds) and not self.is_key

    @property
    def is_date(self) -> bool:
        return self.words[-1] in ("on", "at", "date", "day", "time") or self.type.upper()[
            :4
        ] in ("DATE", "TIME")

    @property
    def is_label(self) -> bool:
        return self.words[-1] in LABELS

    @property
    def is_kind(self) -> bool:
        """Whether rows may be sorted into groups by it."""
        return not (self.is_key or self.is_number or self.is_date or self.is_label)

    def means(self, *words: str) -> bool:
        return any(word in self.words for word in words)

    @property
    def line(self) -> str:
        target = f" → {'.'.join(self.reference)}" if self.reference else ""
        return f"{self.name} {self.type}{target}"

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


Path = tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    columns: tuple[Column, ...]

    @property
    def noun(self) -> str:
        """One row of it: `order`."""
        return singular(self.name.lower().replace("_", " "))

    @property
    def date(self) -> Column | None:
        return next((column for column in self.columns if column.is_date), None)

    @property
    def label(self) -> Column | None:
        return next((column for column in self.columns if column.is_label), None)

    @property
    def key(self) -> Column:
        keys = (column for column in self.columns if column.name.lower() == "id")
        return next(keys, self.columns[0])

    @property
    def references(self) -> list[Column]:
        return [column for column in self.columns if column.reference]

    @property
    def line(self) -> str:
        """The table as a tool describes it."""
        return f"{self.name}({', '.join(column.line for column in self.columns)})"

    def number(self, *words: str) -> Column | None:
        """The first column of numbers that is called by one of these words."""
        numbers = [column for column in self.columns if column.is_number]
        return next((c for word in words for c in numbers if c.means(word)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    tables: tuple[Table, ...]

    @property
    def columns(self) -> list[Column]:
        return [column for table in self.tables for column in table.columns]

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    def path(self, start: str, goal: str, seen: frozenset[str] = frozenset()) -> Path | None:
        """The references to follow from one table to another, always from many to one."""
        if start == goal:
            return ()
        known = {table.name for table in self.tables} - seen - {start}
        for column in self.table(start).references:
            if column.reference and column.reference[0] in known:
                further = self.path(column.reference[0], goal, seen | {start})
                if further is not None:
                    return (column, *further)
        return None

    def reach(self, start: str) -> list[Table]:
        """The tables that a row of this one belongs to, itself first."""
        others = [table for table in self.tables if table.name != start]
        found = [table for table in others if self.path(start, table.name) is not None]
        return [self.table(start), *found]

    @property
    def ledger(self) -> Table | None:
        """The table that says what was earned."""
        with_money = [table for table in self.tables if self.money(table)]
        return max(with_money, key=lambda table: len(table.references), default=None)

    def money(self, table: Table) -> str | None:
        """What one row of the table earned, in SQL."""
        column = table.number(*MONEY)
        if column:
            return str(column)
        quantity = table.number(*QUANTITY)
        prices = (other.number(*PRICE) for other in self.reach(table.name))
        price = next((price for price in prices if price), None)
        return f"{quantity} * {price}" if quantity and price else None

    def without(self, name: str) -> "Schema":
        """The same schema with no column of this name."""
        tables = (
            replace(table, columns=tuple(c for c in table.columns if c.name != name))
            for table in self.tables
        )
        return Schema(tables=tuple(table for table in tables if table.columns))

    def __str__(self) -> str:
        return "\n".join(table.line for table in self.tables)


def read(description: str) -> Schema | None:
    """The schema in a tool's description: a line for each table, `orders(id INTEGER, …)`."""
    matches = (_TABLE.match(line) for line in description.splitlines())
    tables = tuple(_table(*match.groups()) for match in matches if match)
    return Schema(tables=tables) if tables else None


def singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _table(name: str, inside: str) -> Table:
    columns = tuple(_column(name, part) for part in _parts(inside) if _COLUMN.match(part))
    return Table(name=name, columns=columns)


def _column(table: str, text: str) -> Column:
    match, reference = _COLUMN.match(text), _REFERENCE.search(text)
    name, type = match.groups() if match else ("", "")
    target = (reference[1], reference[2] or "id") if reference else None
    return Column(table=table, name=name, type=type, reference=target)


def _parts(inside: str) -> Iterator[str]:
    """What stands between the commas, but for those inside brackets: `DECIMAL(10, 2)`."""
    depth, part = 0, ""
    for sign in inside:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += sign
    yield part.strip()
