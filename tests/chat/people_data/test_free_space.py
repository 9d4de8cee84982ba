"""What was deleted is overwritten, also where SQLite leaves copies of it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from chat.models import Prompt
from chat.people_data import free_space

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL frees its space"),
]


@pytest.fixture
def deleted(person):
    """A megabyte that was deleted; its pages are still in the file."""
    rows = [Prompt(user=person, name=f"p{n}", text="x" * 10_000) for n in range(100)]
    Prompt.objects.bulk_create(rows)
    Prompt.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(connection.settings_dict["NAME"])


def test_a_database_is_rewritten(deleted):
    size = deleted.stat().st_size

    assert free_space.wipe([]) == free_space.OVERWRITTEN
    assert deleted.stat().st_size < size - 900_000
    assert deleted.with_name(f"{deleted.name}-wal").stat().st_size == 0


def test_a_large_database_is_left_and_the_report_says_so(deleted, monkeypatch):
    size = deleted.stat().st_size
    monkeypatch.setattr(free_space, "MAX_REWRITTEN_BYTES", size - 1)

    assert free_space.wipe([]) == free_space.TOO_LARGE
    assert deleted.stat().st_size == size


def test_a_busy_database_is_overwritten_later(deleted):
    other = sqlite3.connect(deleted, isolation_level=None)
    with closing(other), connection.cursor() as cursor:
        other.execute("BEGIN IMMEDIATE")
        cursor.execute("PRAGMA busy_timeout = 10")
        try:
            assert free_space.wipe([]) == free_space.LATER
        finally:
            cursor.execute("PRAGMA busy_timeout = 20000")
