"""Rows that agents are built from, kept in memory until one of them changes.

Agents, tools, models, guardrails and who can use them are read for every question and change
rarely. Triggers leave a random value with every change of their tables, in the same
transaction: while the values are the same, so are the rows.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from threading import local
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from django.utils import timezone

from agents.models import ConfigurationChange, McpServer, ModelConnection

from .compiled_queries import Row, compiled_query
from .periodic import periodic
from .raw_cursor import fetch

Result = TypeVar("Result")
Values = ParamSpec("Values")


def _columns_without(model: type[Model], *names: str) -> str:
    columns = [str(field.column) for field in model._meta.concrete_fields]
    return ", ".join(column for column in columns if column not in names)


# Each with the columns that matter; None for all of them.
TABLES: dict[str, str | None] = {
    "agents_agent": None,
    "agents_agent_groups": None,
    "agents_agent_handoffs": None,
    "agents_agent_tools": None,
    "agents_databaseconnection": None,
    "agents_guardrailpattern": None,
    "agents_guardrailpattern_agents": None,
    "agents_languagemodel": None,
    "agents_languagemodel_groups": None,
    # Its health is written every minute.
    "agents_mcpserver": _columns_without(
        McpServer, "state", "state_since", "last_error", "latency_ms", "restarts"
    ),
    "agents_modelconnection": _columns_without(ModelConnection, "listing"),
    "agents_toolregistration": None,
    "agents_toolregistration_collections": None,
    "agents_toolregistration_groups": None,
    "auth_group": None,
    "auth_user": "is_superuser",
    "auth_user_groups": None,
}
READ_TABLES = re.compile(r'(?:FROM|JOIN) "(\w+)"')
# One value that differs after every change; null while changes aren't noticed.
STAMP_SQL = {
    "sqlite": "SELECT group_concat(value) FROM agents_configurationchange",
    "postgresql": (
        "SELECT md5(string_agg(value, '' ORDER BY id)) FROM agents_configurationchange"
    ),
}
PREFIX = "configuration_"
MAX_RESULTS = 10_000
KEPT_CHANGES = timedelta(hours=1)

Results = dict[Hashable, list[Row]]


class _Memory(local):
    """The results that this thread can use at the moment."""

    results: Results | None = None


_memory = _Memory()
# The last stamp that any thread has read, with the results that belong to it.
_newest: tuple[str | None, Results] = (None, {})


class configuration_query(compiled_query[Values, Result]):
    """A compiled query of the tables above; its rows are new objects each time."""

    def fetch(self, connection: BaseDatabaseWrapper, sql: str, params: list[Any]) -> list[Row]:
        results = _memory.results
        if results is None:
            return super().fetch(connection, sql, params)
        key = (sql, *params)
        if (rows := results.get(key)) is None:
            if len(results) >= MAX_RESULTS:
                results.clear()
            rows = results[key] = super().fetch(connection, sql, params)
        return rows

    def check(self, sql: str) -> None:
        if unknown := {*READ_TABLES.findall(sql)} - TABLES.keys():
            raise ValueError(f"Changes of {', '.join(sorted(unknown))} aren't noticed.")


@contextmanager
def one_configuration() -> Iterator[None]:
    """Answer the configuration queries of a block or a function from memory.

    Nothing is read again unless something has changed.
    """
    if _memory.results is not None:
        yield
        return
    global _newest
    connection = connections[DEFAULT_DB_ALIAS]
    [(stamp,)] = fetch(connection, STAMP_SQL[connection.vendor], ())
    newest = _newest
    if stamp is None:
        newest = (None, {})
    elif newest[0] != stamp:
        newest = _newest = (stamp, {})
    _memory.results = newest[1]
    try:
        yield
    finally:
        _memory.results = None


@periodic("configuration changes", every=600)
def forget_old_changes() -> None:
    """Replace old changes by a new one, so that no stamp comes twice."""
    now = timezone.now()
    with transaction.atomic():
        old_changes = ConfigurationChange.objects.filter(changed_at__lt=now - KEPT_CHANGES)
        if old_changes.count() > 1:
            old_changes.delete()
            ConfigurationChange.objects.create(value=uuid4().hex, changed_at=now)


NOTE_CHANGE = {
    # One writer at a time, so one row is enough.
    "sqlite": """
        DELETE FROM agents_configurationchange;
        INSERT INTO agents_configurationchange (value, changed_at)
        VALUES (hex(randomblob(16)), strftime('%Y-%m-%d %H:%M:%f', 'now'));
    """,
    # Transactions don't wait for each other, because each leaves a row of its own.
    "postgresql": """
        INSERT INTO agents_configurationchange (value, changed_at)
        VALUES (gen_random_uuid(), now());
    """,
}


def create_triggers(using: str, **_signal: Any) -> None:
    """Create the triggers after a migration, which may have changed any row.

    Those that exist stay: creating one waits for everyone who uses its table, and everyone else
    waits meanwhile.
    """
    connection = connections[using]
    note_change = NOTE_CHANGE[connection.vendor]
    with transaction.atomic(using), connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        if ConfigurationChange._meta.db_table not in tables:
            return  # migrated back to before it existed
        if connection.vendor == "postgresql":
            cursor.execute(
                "CREATE OR REPLACE FUNCTION configuration_changed() RETURNS trigger"
                f" LANGUAGE plpgsql AS $$ BEGIN {note_change} RETURN NULL; END $$"
            )
        triggers = {
            (table, name): definition
            for table in TABLES.keys() & tables
            for name, definition in _triggers(connection.vendor, table)
        }
        existing = _existing_triggers(cursor, connection.vendor)
        _drop(cursor, connection.vendor, existing - triggers.keys())
        for table, name in sorted(triggers.keys() - existing):
            cursor.execute(f"CREATE TRIGGER {name} {triggers[table, name]}")
        for statement in filter(str.strip, note_change.split(";")):
            cursor.execute(statement)


def drop_triggers(using: str, **_signal: Any) -> None:
    """Drop the triggers before a migration, which can drop or rename what they use.

    From then on nothing is kept in memory, until they are created again.
    """
    connection = connections[using]
    with connection.cursor() as cursor:
        if ConfigurationChange._meta.db_table in connection.introspection.table_names(cursor):
            cursor.execute("DELETE FROM agents_configurationchange")
        existing = _existing_triggers(cursor, connection.vendor)
        _drop(cursor, connection.vendor, existing)


def _drop(cursor: CursorWrapper, vendor: str, triggers: Iterable[tuple[str, str]]) -> None:
    for table, name in sorted(triggers):
        on_table = f" ON {table}" if vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on_table}")


EXISTING = {
    "sqlite": "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": """
        SELECT relname, tgname FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid
        WHERE NOT tgisinternal AND pg_table_is_visible(tgrelid)
    """,
}


def _existing_triggers(cursor: CursorWrapper, vendor: str) -> set[tuple[str, str]]:
    """Return the table and the name of each."""
    cursor.execute(EXISTING[vendor])
    return {(table, name) for table, name in cursor.fetchall() if name.startswith(PREFIX)}


def _triggers(vendor: str, table: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the definition of a table's triggers; another one has another name."""
    columns = TABLES[table]
    update = "UPDATE" if columns is None else f"UPDATE OF {columns}"
    if vendor == "postgresql":
        action = "FOR EACH STATEMENT EXECUTE FUNCTION configuration_changed()"
        definitions = [f"AFTER INSERT OR {update} OR DELETE ON {table} {action}"]
    else:
        action = f"BEGIN {NOTE_CHANGE[vendor]} END"
        events = ("INSERT", update, "DELETE")
        definitions = [f"AFTER {event} ON {table} {action}" for event in events]
    for definition in definitions:
        yield f"{PREFIX}{sha256(definition.encode()).hexdigest()[:16]}", definition
