"""Overwrites what a database still holds of deleted rows."""

import time
from collections.abc import Iterable
from pathlib import Path

from django.db import DatabaseError, connection

# Rewriting a larger SQLite database would block other writers for too long.
MAX_REWRITTEN_BYTES = 256 * 2**20
MAX_ATTEMPTS = 20
RETRY_SECONDS = 0.25
# While it waits for readers, a checkpoint keeps writers waiting.
CHECKPOINT_MS = 100

# States in the erasure report.
OVERWRITTEN = "overwritten"
TOO_LARGE = "too_large"
VACUUMED = "vacuumed"
AUTOMATIC = "automatic"
LATER = "later"


def wipe(tables: Iterable[str]) -> str:
    """Overwrite deleted data; return how far that went.

    SQLite overwrites what it deletes (`secure_delete`), but when it moves rows between pages,
    copies can stay in the free part of a page. So the file is rewritten. Its log is
    truncated, which waits for readers. PostgreSQL marks the space as free for reuse.
    """
    if connection.in_atomic_block:
        return LATER
    if connection.vendor == "postgresql":
        table_list = ", ".join(map(connection.ops.quote_name, sorted(tables)))
        # Without the permission, it is left to PostgreSQL's autovacuum.
        return VACUUMED if _vacuum(table_list) else AUTOMATIC
    is_small = Path(connection.settings_dict["NAME"]).stat().st_size <= MAX_REWRITTEN_BYTES
    if is_small and not _vacuum():
        return LATER
    if not _truncate_log():
        return LATER
    return OVERWRITTEN if is_small else TOO_LARGE


def _truncate_log() -> bool:
    """Return whether the whole log is in the database now, and empty."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        [usual_ms] = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {CHECKPOINT_MS}")
        try:
            for _attempt in range(MAX_ATTEMPTS):
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                is_busy, *_pages = cursor.fetchone()
                if not is_busy:
                    return True
                time.sleep(RETRY_SECONDS)
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual_ms}")
    return False


def _vacuum(table_list: str = "") -> bool:
    """Return False if the database is busy, or the permission is missing."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM {table_list}")
    except DatabaseError:
        return False
    return True
