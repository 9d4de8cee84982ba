"""Test databases: one worker migrates, and every worker gets a copy."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asgiref.sync import SyncToAsync
from django.core.management import call_command
from django.db import connection, connections

from tests import first_start

TEMPLATE = "migrated"
TIMEOUT_SECONDS = 30


@contextmanager
def connected_to(name: Path | str) -> Iterator[None]:
    """Connect to this database, also in the thread that serves async code."""
    before = connection.settings_dict["NAME"]
    _connect_to(name)
    _close_async_thread()
    try:
        yield
    finally:
        _connect_to(before)
        _close_async_thread()


@contextmanager
def connect_to_copy(place: Path, name: str) -> Iterator[None]:
    """Connect to a migrated database of this name; `place` is the folder of the whole run."""
    copy = _copy_file if connection.vendor == "sqlite" else _copy_database
    before = connection.settings_dict["NAME"]
    copy(place, name)
    try:
        yield
    finally:
        _connect_to(before)


def save_content() -> sqlite3.Connection:
    """Save the content of SQLite."""
    kept = sqlite3.connect(":memory:", check_same_thread=False)
    connection.ensure_connection()
    connection.connection.backup(kept)
    return kept


def restore_content(kept: sqlite3.Connection) -> None:
    """Restore the saved content."""
    connection.ensure_connection()
    kept.backup(connection.connection)


def _copy_file(place: Path, name: str) -> None:
    template = first_start.create_once(place, _migrate_file) / TEMPLATE
    own = connection.settings_dict["TEST"]["NAME"]
    shutil.copyfile(template, own)
    _connect_to(own)


def _migrate_file(place: Path) -> None:
    (place / "data").mkdir()
    _migrate(place / "data" / TEMPLATE)


def _copy_database(place: Path, name: str) -> None:
    first_start.create_once(place, _migrate_database)
    _run(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    _connect_to(name)


def _migrate_database(place: Path) -> None:
    server = connection.settings_dict["NAME"]
    _run(f"CREATE DATABASE {TEMPLATE}")
    _migrate(TEMPLATE)
    # A template can only be copied while nothing is connected to it.
    _connect_to(server)


def _migrate(name: Path | str) -> None:
    _connect_to(name)
    call_command("migrate", verbosity=0, interactive=False)
    # Closing the last connection also moves SQLite's write-ahead log into the file.
    connection.close()


def _connect_to(name: Path | str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name


def _close_async_thread() -> None:
    SyncToAsync.single_thread_executor.submit(connections.close_all).result(TIMEOUT_SECONDS)


def _run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
