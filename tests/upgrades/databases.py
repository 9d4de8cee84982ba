"""A database filled from the SQL of `fill.py`, and its schema, on SQLite and PostgreSQL."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from tests import tables
from tests.upgrades.fill import SEARCH_INDEX

PARTS = {
    "sqlite": {
        "columns": """
            SELECT tables.name, columns.name, columns.type, "notnull", dflt_value, pk
            FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
            WHERE tables.type = 'table'
        """,
        "others": "SELECT type, name, sql FROM sqlite_master WHERE type != 'table'",
    },
    "postgresql": {
        "columns": """
            SELECT table_name, column_name, data_type, character_maximum_length, is_nullable,
                column_default, is_identity
            FROM information_schema.columns WHERE table_schema = 'public'
        """,
        "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "constraints": """
            SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
            FROM pg_constraint WHERE connamespace = 'public'::regnamespace
        """,
        "triggers": """
            SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
        """,
    },
}


def schema() -> dict[str, list]:
    """Return columns in any order, indexes, constraints and triggers, as text."""
    found = {}
    with connection.cursor() as cursor:
        for part, query in PARTS[connection.vendor].items():
            cursor.execute(query)
            found[part] = sorted([str(word).split() for word in row] for row in cursor)
    return found


def load(filled: Path, migrations: Iterable[tuple[str, str]]) -> Path | str:
    """Create a database of these migrations with these rows; return its name."""
    if connection.vendor == "sqlite":
        return filled
    name = f"{filled.parent.name}_{os.getpid()}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    with tables.connected_to(name):
        last_of_each_app = dict(sorted(migrations)).items()
        # Not the command, which would already add rows.
        MigrationExecutor(connection).migrate([*last_of_each_app])
        with closing(sqlite3.connect(filled)) as source:
            _copy_rows(source)
    return name


@transaction.atomic
def _copy_rows(source: sqlite3.Connection) -> None:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table == SEARCH_INDEX:
                _index_passages(cursor)
            elif table != "django_migrations":
                _copy_table(source, cursor, table)


def _copy_table(source: sqlite3.Connection, cursor, table: str) -> None:
    cursor.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s",
        [table],
    )
    kinds = dict(cursor.fetchall())
    columns = ", ".join(f'"{name}"' for name in kinds)
    places = ", ".join(["%s"] * len(kinds))
    rows = source.execute(f'SELECT {columns} FROM "{table}"').fetchall()
    cursor.executemany(
        f'INSERT INTO "{table}" ({columns}) VALUES ({places})',
        [[_convert(*pair) for pair in zip(row, kinds.values(), strict=True)] for row in rows],
    )
    if "id" in kinds and rows:
        cursor.execute(
            f"SELECT setval(pg_get_serial_sequence(%s, 'id'), max(id)) FROM \"{table}\"",
            [table],
        )


def _convert(value, kind: str):
    """Convert booleans, which SQLite lacks."""
    return bool(value) if kind == "boolean" and value is not None else value


def _index_passages(cursor) -> None:
    """Rebuild the search index from the passages, because the two formats differ."""
    cursor.execute(
        f"""
        INSERT INTO {SEARCH_INDEX} (rowid, length, words, telling)
        SELECT id, 100, to_tsvector('english', text), to_tsvector('english', text)
        FROM agents_chunk
        """
    )
