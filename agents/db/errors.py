"""Messages for database errors."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC

from django.db import DatabaseError, OperationalError
from django.utils.translation import gettext as _

logger = logging.getLogger(__name__)

# Codes of SQLite, PostgreSQL and the system for a full disk. Each has its own numbers: 13 is a
# full disk for SQLite, and a missing permission for the system.
DISK_FULL_CODES = {
    "sqlite_errorcode": sqlite3.SQLITE_FULL,
    "sqlstate": "53100",
    "errno": ENOSPC,
}


def is_disk_full(error: BaseException | None) -> bool:
    while error is not None:
        if any(getattr(error, name, None) == code for name, code in DISK_FULL_CODES.items()):
            return True
        error = error.__cause__
    return False


def error_message(error: DatabaseError) -> str:
    """Return why something wasn't saved, and what to do about it."""
    if is_disk_full(error):
        return _("Storage is full, so this wasn't saved. Contact your administrator.")
    return _("The database isn't responding, so this wasn't saved. Try again in a moment.")


@contextmanager
def reraise_as(error_type: type[Exception]) -> Iterator[None]:
    """Turn database errors into this exception, with a message, and log them."""
    try:
        yield
    except OperationalError as error:
        logger.warning("Can't save to the database: %s", error)
        raise error_type(error_message(error)) from error
