"""What a database still has of rows that were deleted, and how it is made to forget it."""

import time
from collections.abc import Iterable

from django.db import DatabaseError, connection

MAX_ATTEMPTS, RETRY_SECONDS = 20, 0.25  # seconds

# What the report of an erasure says of it.
OVERWRITTEN, VACUUMED, LATER = "overwritten", "vacuumed", "later"


def wipe(tables: Iterable[str]) -> str:
    """Make the database forget what was deleted; say how far that has come.

    SQLite overwrites what it deletes (`secure_delete`), and its log is emptied here, which has
    to wait for whoever reads. PostgreSQL marks the place as free, to be written over.
    """
    if connection.vendor == "postgresql":
        return _vacuum(tables)
    for _attempt in range(MAX_ATTEMPTS):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy, *_pages = cursor.fetchone()
        if not is_busy:
            return OVERWRITTEN
        time.sleep(RETRY_SECONDS)
    return LATER


def _vacuum(tables: Iterable[str]) -> str:
    if connection.in_atomic_block:
        return LATER
    named = ", ".join(map(connection.ops.quote_name, sorted(tables)))
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM {named}")
    except DatabaseError:  # not ours to do: the database comes by itself
        return LATER
    return VACUUMED
