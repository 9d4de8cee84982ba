"""Runs a management command, with readable messages for database problems."""

import sqlite3
import sys
from collections.abc import Iterator, Sequence

from django.core.management import execute_from_command_line

from agents.engine.privacy import mask_secrets

# PostgreSQL's codes for a missing table, column or schema.
MISSING_SQLSTATES = {"42P01", "42703", "3F000"}
NOT_SET_UP = (
    "The database isn't set up for this version ({reason}). Run “python manage.py setup” first."
)
UNREACHABLE = "Can't use the database at {place}: {reason}. {advice}"
FILE_ADVICE = "Check the ASHIATO_DATA folder and its permissions, then try again."
SERVER_ADVICE = (
    "Check that it is running and that ASHIATO_DATABASE_URL is correct, then try again."
)


def execute(arguments: Sequence[str]) -> None:
    """Run a command; a missing database isn't a traceback, except with --traceback."""
    # Only now, because Django's database errors need its settings.
    from django.db import DatabaseError

    try:
        execute_from_command_line(list(arguments))
    except DatabaseError as error:
        message = error_message(error)
        if message is None or "--traceback" in arguments:
            raise
        sys.exit(message)


def error_message(error: BaseException) -> str | None:
    """Return what is wrong with the database; None if the program is at fault."""
    from django.db import OperationalError, connection

    reason = mask_secrets(str(error).strip().splitlines()[0].rstrip(".")) if str(error) else "?"
    if _is_not_set_up(error):
        return NOT_SET_UP.format(reason=reason)
    if not isinstance(error, OperationalError) and not _is_corrupt(error):
        return None
    database = connection.settings_dict
    is_file = connection.vendor == "sqlite"
    place = (
        database["NAME"] if is_file else f"{database['HOST'] or 'localhost'}/{database['NAME']}"
    )
    advice = FILE_ADVICE if is_file else SERVER_ADVICE
    return UNREACHABLE.format(place=place, reason=reason, advice=advice)


def _is_not_set_up(error: BaseException) -> bool:
    is_missing = str(error).startswith(("no such table", "no such column"))
    has_no_column = " has no column named " in str(error)
    codes = {getattr(each, "sqlstate", None) for each in _cause_chain(error)}
    return is_missing or has_no_column or bool(MISSING_SQLSTATES & codes)


def _is_corrupt(error: BaseException) -> bool:
    known = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
    return any(getattr(each, "sqlite_errorcode", None) in known for each in _cause_chain(error))


def _cause_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
