"""Overwrites what a database still holds of deleted rows."""

import time
from collections.abc import Iterable

from django.db import DatabaseError, connection

MAX_ATTEMPTS = 20
RETRY_SECONDS = 0.25

# States in the erasure report.
OVERWRITTEN = "overwritten"
VACUUMED = "vacuumed"
LATER = "later"


def wipe(tables: Iterable[str]) -> str:
    """Overwrite deleted data; return how far that went.

    SQLite overwrites what it deletes (`secure_delete`) and its log is truncated here, which
    waits for readers. PostgreSQL marks the space as free for reuse.
    """
    if connection.vendor == "postgresql":
        if connection.in_atomic_block:
            return LATER
        table_list = ", ".join(map(connection.ops.quote_name, sorted(tables)))
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"VACUUM {table_list}")
        except DatabaseError:  # no permission; autovacuum will do it
            return LATER
        return VACUUMED
    for _attempt in range(MAX_ATTEMPTS):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy, *_pages = cursor.fetchone()
        if not is_busy:
            return OVERWRITTEN
        time.sleep(RETRY_SECONDS)
    return LATER
