"""Overwrites what a database still holds of deleted rows."""

import time
from collections.abc import Iterable
from pathlib import Path

from django.db import DatabaseError, connection

# Writing a larger SQLite database anew would let everyone else wait for too long.
MAX_REWRITTEN_BYTES = 256 * 2**20
MAX_ATTEMPTS = 20
RETRY_SECONDS = 0.25

# States in the erasure report.
OVERWRITTEN = "overwritten"
TOO_LARGE = "too_large"
VACUUMED = "vacuumed"
LATER = "later"


def wipe(tables: Iterable[str]) -> str:
    """Overwrite deleted data; return how far that went.

    SQLite overwrites what it deletes (`secure_delete`), but when it moves rows between pages,
    copies can stay in the free part of a page. So the file is written anew. Its log is
    truncated here, which waits for readers. PostgreSQL marks the space as free for reuse.
    """
    if connection.in_atomic_block:
        return LATER
    if connection.vendor == "postgresql":
        table_list = ", ".join(map(connection.ops.quote_name, sorted(tables)))
        return VACUUMED if _vacuum(table_list) else LATER
    is_small = Path(connection.settings_dict["NAME"]).stat().st_size <= MAX_REWRITTEN_BYTES
    if is_small and not _vacuum():
        return LATER
    for _attempt in range(MAX_ATTEMPTS):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy, *_pages = cursor.fetchone()
        if not is_busy:
            return OVERWRITTEN if is_small else TOO_LARGE
        time.sleep(RETRY_SECONDS)
    return LATER


def _vacuum(table_list: str = "") -> bool:
    """Return whether it was possible; there may be no permission, or the database is busy."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM {table_list}")
    except DatabaseError:
        return False
    return True
