"""Django's `migrate`, which rejects databases from before the baseline migrations.

`setup` and `serve` run it too.
"""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

APP, BASELINE = "agents", "0001_baseline"
TOO_OLD = (
    "The database {place} was created by an earlier version of Ashiato and can't be upgraded. "
    "Nothing was changed. To keep its settings and chats, export them with that version: "
    "“manage.py export_config” and “manage.py export_person”. "
    "Then {advice}, start again, and load the settings with “manage.py import_config”."
)
NEW_FOLDER = "rename the folder {folder} or set ASHIATO_DATA to a new one"
NEW_DATABASE = "set ASHIATO_DATABASE_URL to an empty database"


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        check_baseline(connections[options["database"]])
        super().handle(*args, **options)


def check_baseline(connection: BaseDatabaseWrapper) -> None:
    """Raise CommandError if our tables were created without the baseline."""
    applied = MigrationRecorder(connection).applied_migrations()
    names = {name for app, name in applied if app == APP}
    if names and BASELINE not in names:
        raise CommandError(_too_old(connection))


def _too_old(connection: BaseDatabaseWrapper) -> str:
    about = connection.settings_dict
    if connection.vendor == "sqlite":
        place = about["NAME"]
        advice = NEW_FOLDER.format(folder=Path(place).parent)
    else:
        place, advice = f"{about['HOST'] or 'localhost'}/{about['NAME']}", NEW_DATABASE
    return TOO_OLD.format(place=place, advice=advice)
