"""Runs a management command, with readable messages for database problems."""

import gc
import sqlite3
import sys
from collections.abc import Sequence

from django.core.checks import Tags
from django.core.management import ManagementUtility
from django.core.management.base import BaseCommand

from agents.engine.privacy import mask_secrets
from project import folders

# What an operator configures. The other checks are of the code, and load every page.
CONFIGURATION_CHECKS = [
    Tags.caches,
    Tags.compatibility,
    Tags.database,
    Tags.files,
    Tags.security,
    Tags.staticfiles,
    Tags.templates,
    Tags.translation,
]
OWN_PACKAGES = ("agents.", "chat.")
# PostgreSQL's codes for a missing table, column or schema.
MISSING_SQLSTATES = {"42P01", "42703", "3F000"}
PROGRAM = "ashiato" if folders.IS_INSTALLED else "python manage.py"
NOT_SET_UP = (
    "The database isn't set up for this version ({reason}). Run “{program} setup” first."
)
UNREACHABLE = "Can't use the database at {place}: {reason}. {advice}"
FILE_ADVICE = "Check the ASHIATO_DATA folder and its permissions, then try again."
SERVER_ADVICE = (
    "Check that it is running and that ASHIATO_DATABASE_URL is correct, then try again."
)


class Commands(ManagementUtility):
    """Starts in less time: without garbage collection, and with the checks that can fail."""

    def execute(self) -> None:
        gc.disable()
        try:
            super().execute()
        finally:
            gc.enable()

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        if type(command).__module__.startswith(OWN_PACKAGES):
            command.requires_system_checks = CONFIGURATION_CHECKS
        gc.freeze()  # what is loaded now stays
        gc.enable()
        return command


def execute(arguments: Sequence[str]) -> None:
    """Run a command; a missing database isn't a traceback, except with --traceback."""
    # Only now, because Django's database errors need its settings.
    from django.db import DatabaseError

    try:
        Commands(list(arguments)).execute()
    except DatabaseError as error:
        message = error_message(error)
        if message is None or "--traceback" in arguments:
            raise
        sys.exit(message)


def error_message(error: BaseException) -> str | None:
    """Return what is wrong with the database; None if the program is at fault."""
    from django.db import OperationalError, connection

    reason = mask_secrets(str(error).strip().splitlines()[0].rstrip(".")) if str(error) else "?"
    causes = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__
    is_missing = str(error).startswith(("no such table", "no such column"))
    has_no_column = " has no column named " in str(error)
    states = {getattr(cause, "sqlstate", None) for cause in causes}
    if is_missing or has_no_column or MISSING_SQLSTATES & states:
        return NOT_SET_UP.format(reason=reason, program=PROGRAM)
    codes = {getattr(cause, "sqlite_errorcode", None) for cause in causes}
    is_corrupt = bool({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT} & codes)
    if not isinstance(error, OperationalError) and not is_corrupt:
        return None
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        location = database["NAME"]
        advice = FILE_ADVICE
    else:
        location = f"{database['HOST'] or 'localhost'}/{database['NAME']}"
        advice = SERVER_ADVICE
    return UNREACHABLE.format(place=location, reason=reason, advice=advice)
