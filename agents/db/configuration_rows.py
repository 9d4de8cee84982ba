"""Rows that agents are built from, kept in memory until one of them changes.

Agents, tools, models, guardrails and who can use them are read for every question and change
rarely. Triggers leave a random value with every change of their tables, in the same
transaction: while the values are the same, so are the rows.
"""

import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import local
from typing import Any, ParamSpec, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from agents.models import ConfigurationChange

from .compiled_queries import Row, compiled_query
from .periodic import periodic
from .raw_cursor import fetch

Result = TypeVar("Result")
Values = ParamSpec("Values")

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
    "agents_mcpserver": None,
    "agents_toolregistration": None,
    "agents_toolregistration_collections": None,
    "agents_toolregistration_groups": None,
    "auth_group": None,
    "auth_user": "is_superuser",
    "auth_user_groups": None,
}
READ_TABLES = re.compile(r'(?:FROM|JOIN) "(\w+)"')
STAMP_SQL = 'SELECT "value" FROM "agents_configurationchange"'
MAX_RESULTS = 10_000
KEPT_CHANGES = timedelta(hours=1)

Results = dict[Hashable, list[Row]]


class _Memory(local):
    """The results that this thread can use at the moment."""

    results: Results | None = None


_memory = _Memory()
# The last stamp that any thread has read, with the results that belong to it.
_newest: tuple[Hashable, Results] = ((), {})


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
    stamp = frozenset(value for (value,) in fetch(connections[DEFAULT_DB_ALIAS], STAMP_SQL, ()))
    newest = _newest
    if newest[0] != stamp:
        newest = _newest = (stamp, {})
    _memory.results = newest[1]
    try:
        yield
    finally:
        _memory.results = None


@periodic("configuration changes", every=600)
def forget_old_changes() -> None:
    """Delete all but recent changes; the newest one stays, so that no stamp comes twice."""
    newest = ConfigurationChange.objects.order_by("pk").last()
    if newest is not None:
        old_changes = ConfigurationChange.objects.exclude(pk=newest.pk)
        old_changes.filter(changed_at__lt=timezone.now() - KEPT_CHANGES).delete()


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
    """Create the triggers after a migration, which may have changed any row."""
    connection = connections[using]
    note_change = NOTE_CHANGE[connection.vendor]
    with transaction.atomic(using), connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
        if ConfigurationChange._meta.db_table not in existing:
            return  # migrated back to before it existed
        if connection.vendor == "postgresql":
            cursor.execute(
                "CREATE OR REPLACE FUNCTION configuration_changed() RETURNS trigger"
                f" LANGUAGE plpgsql AS $$ BEGIN {note_change} RETURN NULL; END $$"
            )
        for table in TABLES.keys() & existing:
            for trigger, event, action in _triggers(connection.vendor, table):
                _drop_trigger(cursor, connection.vendor, trigger, table)
                cursor.execute(f"CREATE TRIGGER {trigger} AFTER {event} ON {table} {action}")
        for statement in filter(str.strip, note_change.split(";")):
            cursor.execute(statement.replace("%", "%%"))


def drop_triggers(using: str, **_signal: Any) -> None:
    """Drop the triggers before a migration, which can drop or rename what they use."""
    connection = connections[using]
    with connection.cursor() as cursor:
        existing = set(connection.introspection.table_names(cursor))
        for table in TABLES.keys() & existing:
            for trigger, *_event in _triggers(connection.vendor, table):
                _drop_trigger(cursor, connection.vendor, trigger, table)


def _drop_trigger(cursor: CursorWrapper, vendor: str, trigger: str, table: str) -> None:
    on_table = f" ON {table}" if vendor == "postgresql" else ""
    cursor.execute(f"DROP TRIGGER IF EXISTS {trigger}{on_table}")


def _triggers(vendor: str, table: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the event and the action of a table's triggers."""
    columns = TABLES[table]
    update = "UPDATE" if columns is None else f"UPDATE OF {columns}"
    if vendor == "postgresql":
        event = f"INSERT OR {update} OR DELETE"
        action = "FOR EACH STATEMENT EXECUTE FUNCTION configuration_changed()"
        yield "configuration_changed", event, action
        return
    for event in ("INSERT", update, "DELETE"):
        name = f"configuration_{table}_{event.split()[0].lower()}"
        yield name, event, f"BEGIN {NOTE_CHANGE[vendor]} END"
