"""The tables that a tool can read, how a query names them, and how a model learns of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from textwrap import shorten
from typing import Any, Self

from .dialects import DIALECTS, DatabaseKind, Dialect
from .sql_worker import fold_case

MAX_TABLES_DESCRIBED = 40
# Each request to a model contains it, and names of an uploaded table's columns can be anything.
MAX_DESCRIPTION_CHARS = 12_000
DEFAULT_SCHEMA = "public"

# Allowed tables by key; None allows all columns of a table.
Allowed = Mapping[str, Sequence[str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    type: str = ""
    references: tuple[str, str] | None = None  # the table's key, and its column ("" if unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view; `hides` means that it has more columns than these."""

    name: str
    columns: tuple[Column, ...]
    schema: str = ""
    estimate: int | None = None  # of its rows
    is_view: bool = False
    hides: bool = False

    @property
    def key(self) -> str:
        """Its name in a list of allowed tables."""
        is_default = self.schema in ("", DEFAULT_SCHEMA)
        return self.name if is_default else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Name:
    """A name as a query writes it."""

    text: str
    is_quoted: bool = False

    @property
    def stored(self) -> str:
        """The name that PostgreSQL looks up."""
        return self.text if self.is_quoted else fold_case(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The readable tables of a database."""

    kind: DatabaseKind
    tables: tuple[Table, ...]
    database: str = ""  # the name of the only one a query can write; PostgreSQL has schemas
    # MySQL only: whether names of tables are compared as written.
    is_case_sensitive: bool = False

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.kind]

    def limited_to(self, allowed: Allowed | None) -> Self:
        """Return the tables and columns of a list; None means all."""
        if allowed is None:
            return self
        folded = {self.fold(key): columns for key, columns in allowed.items()}
        fold_column = str if self.kind == DatabaseKind.POSTGRESQL else fold_case
        tables = []
        for table in self.tables:
            if self.fold(table.key) not in folded:
                continue
            names = folded[self.fold(table.key)]
            if names is not None:
                readable = set(map(fold_column, names))
                columns = tuple(c for c in table.columns if fold_column(c.name) in readable)
                hides = len(columns) < len(table.columns)
                table = replace(table, columns=columns, hides=hides)
            if table.columns:
                tables.append(table)
        return replace(self, tables=tuple(tables))

    def fold(self, name: str) -> str:
        """Fold a name as the database compares it when it is written without quotes."""
        if self.kind == DatabaseKind.POSTGRESQL:
            return name  # the list has names as they are stored
        return name if self.is_case_sensitive else fold_case(name)

    def find(self, name: Name, schema_name: Name | None = None) -> Table | None:
        """Return the table that a query names, with the schema or database it writes."""
        if self.kind != DatabaseKind.POSTGRESQL:
            if schema_name is not None and self.fold(schema_name.text) != self.fold(
                self.database
            ):
                return None
            tables = [
                table for table in self.tables if self.fold(table.name) == self.fold(name.text)
            ]
            return tables[0] if tables else None
        tables = [table for table in self.tables if table.name == name.stored]
        if schema_name is not None:
            tables = [table for table in tables if table.schema == schema_name.stored]
        elif len(tables) > 1:
            tables = [table for table in tables if table.schema == DEFAULT_SCHEMA]
        return tables[0] if len(tables) == 1 else None

    def full_name(self, table: Table) -> str:
        """Return a name that leads to this table whatever the connection's defaults are."""
        if self.kind == DatabaseKind.SQLITE:
            return self.dialect.quote(table.name)  # a listed view is shadowed by its name
        schema_name = table.schema or self.database
        return f"{self.dialect.quote(schema_name)}.{self.dialect.quote(table.name)}"

    def names(self) -> list[str]:
        return [table.key for table in self.tables]

    def describe(self) -> list[str]:
        return list(_describe(self))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        tables = []
        for table in values["tables"]:
            columns = []
            for column in table["columns"]:
                target = column.get("references")
                references = (target[0], target[1]) if target else None
                columns.append(Column(**{**column, "references": references}))
            tables.append(Table(**{**table, "columns": tuple(columns)}))
        return cls(
            kind=DatabaseKind(values["kind"]),
            tables=tuple(tables),
            database=values.get("database", ""),
            is_case_sensitive=bool(values.get("is_case_sensitive")),
        )


@lru_cache(maxsize=64)
def _describe(schema: Schema) -> tuple[str, ...]:
    """Return the description of a schema, which every run of an agent needs."""
    keys = {table.key for table in schema.tables}
    chars_left = MAX_DESCRIPTION_CHARS
    lines: list[str] = []
    for table in schema.tables[:MAX_TABLES_DESCRIBED]:
        columns = []
        for column in table.columns:
            text = f"{quote_name(schema, column.name)} {column.type}".rstrip()
            target, key = column.references or ("", "")
            if target in keys:
                text += f" → {quote_name(schema, target)}"
                text += f".{quote_name(schema, key)}" if key else ""
            columns.append(text)
        listed = shorten(", ".join(columns), max(chars_left, 200), placeholder=" …")
        lines.append(f"{table_name(schema, table)}({listed})")
        chars_left -= len(lines[-1])
        if chars_left < 0:
            break
    if unlisted := schema.tables[len(lines) :]:
        listed = ", ".join(table_name(schema, table) for table in unlisted)
        lines.append(f"And: {shorten(listed, 2_000, placeholder=' …')}")
    return tuple(lines)


def table_name(schema: Schema, table: Table) -> str:
    """Return a table's name as a query would write it."""
    name = quote_name(schema, table.name)
    if table.key == table.name or not table.schema:
        return name
    return f"{quote_name(schema, table.schema)}.{name}"


def quote_name(schema: Schema, name: str) -> str:
    """Quote a name where the database needs it; SQLite's in double quotes, as models do."""
    folds = schema.kind != DatabaseKind.POSTGRESQL or name == fold_case(name)
    if name.isidentifier() and folds:
        return name
    mark = "`" if schema.kind == DatabaseKind.MYSQL else '"'
    return mark + name.replace(mark, mark * 2) + mark
