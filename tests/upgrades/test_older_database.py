"""A database from before the baseline is rejected with a message, and left unchanged."""

import hashlib
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

ROOT = Path(__file__).resolve().parents[2]
EARLIER = ("0001_baseline", "0002_chunk_index", "0057_approval_reason")


def applied_migrations():
    return MigrationRecorder(connection).migration_qs.filter(app="agents")


@pytest.fixture
def record(db):
    """Set which of our migrations this database has, for one test."""
    recorder = MigrationRecorder(connection)

    def record(*names):
        applied_migrations().delete()
        for name in names:
            recorder.record_applied("agents", name)

    return record


@pytest.mark.both_databases
@pytest.mark.parametrize("command", ["migrate", "setup"])
@pytest.mark.parametrize("names", [EARLIER, EARLIER[:1]], ids=["whole", "half-made"])
def test_an_earlier_database_is_rejected(record, command, names):
    record(*names)

    with pytest.raises(CommandError, match="earlier version of Ashiato") as refused:
        call_command(command)

    name = str(connection.settings_dict["NAME"])
    way_out = "ASHIATO_DATA" if connection.vendor == "sqlite" else "ASHIATO_DATABASE_URL"
    assert name in str(refused.value)
    assert way_out in str(refused.value)


@pytest.mark.parametrize("newer", [(), ("9999_of_a_newer_version",)], ids=["same", "newer"])
def test_this_version_and_a_newer_one_are_accepted(record, newer):
    """Going back to the version before is promised: it runs on the newer tables."""
    ours = [name for app, name in MigrationLoader(None).disk_migrations if app == "agents"]
    record(*ours, *newer)

    call_command("migrate", verbosity=0)

    assert {*ours, *newer} == {row.name for row in applied_migrations()}


@pytest.mark.parametrize(
    "command", [pytest.param("setup", marks=pytest.mark.thorough), "serve"]
)
def test_starting_on_an_earlier_database_changes_nothing(tmp_path, command):
    file = tmp_path / "ashiato.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "CREATE TABLE django_migrations (id integer PRIMARY KEY AUTOINCREMENT,"
            " app varchar(255), name varchar(255), applied datetime)"
        )
        rows = [(number, "agents", name, None) for number, name in enumerate(EARLIER)]
        database.executemany("INSERT INTO django_migrations VALUES (?, ?, ?, ?)", rows)
        database.commit()
        database.execute("PRAGMA journal_mode = wal")
    before = hashlib.sha256(file.read_bytes()).hexdigest()

    done = subprocess.run(
        [sys.executable, "manage.py", command, *(["--port=0"] if command == "serve" else [])],
        env={**os.environ, "ASHIATO_DATA": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert done.returncode == 1
    assert "was created by an earlier version of Ashiato" in done.stderr
    assert f"rename the folder {tmp_path}" in done.stderr
    assert "Traceback" not in done.stderr
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
