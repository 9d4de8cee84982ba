"""Django's `migrate`, which rejects databases from before the baseline migrations.

It can be killed at any moment and run again. `setup` and `serve` run it too.
"""

from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

APP = "agents"
BASELINE = "0001_tables"
TOO_OLD = (
    "The database {place} was created by an earlier version of Ashiato and can't be upgraded. "
    "Nothing was changed. To keep its settings and chats, export them with that version: "
    "“manage.py export_config” and “manage.py export_person”. "
    "Then {advice}, start again, and load the settings with “manage.py import_config”."
)
NEW_FOLDER = "rename the folder {folder} or set ASHIATO_DATA to a new one"
NEW_DATABASE = "set ASHIATO_DATABASE_URL to an empty database"


class AtomicExecutor(MigrationExecutor):
    """Records a migration in the transaction that applies it.

    Django records those that add indexes to new tables later. If it is killed in between, the
    tables exist when it is run again, and it fails from then on.
    """

    def apply_migration(
        self,
        state: ProjectState,
        migration: Migration,
        fake: bool = False,
        fake_initial: bool = False,
    ) -> ProjectState:
        wrapped: Any = copy(migration)
        wrapped.apply = partial(_apply_with_deferred, migration)
        return super().apply_migration(state, wrapped, fake, fake_initial)


def _apply_with_deferred(
    migration: Migration,
    state: ProjectState,
    schema_editor: BaseDatabaseSchemaEditor,
    collect_sql: bool = False,
) -> ProjectState:
    state = migration.apply(state, schema_editor, collect_sql)
    for statement in schema_editor.deferred_sql:
        schema_editor.execute(statement, None)
    schema_editor.deferred_sql.clear()
    return state


# Django's command has no parameter for it.
vars(migrate)["MigrationExecutor"] = AtomicExecutor


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        check_baseline(connections[options["database"]])
        super().handle(*args, **options)


def check_baseline(connection: BaseDatabaseWrapper) -> None:
    """Raise CommandError if our tables were created without the baseline."""
    applied = MigrationRecorder(connection).applied_migrations()
    names = {name for app, name in applied if app == APP}
    if names and BASELINE not in names:
        database = connection.settings_dict
        if connection.vendor == "sqlite":
            location = database["NAME"]
            advice = NEW_FOLDER.format(folder=Path(location).parent)
        else:
            location = f"{database['HOST'] or 'localhost'}/{database['NAME']}"
            advice = NEW_DATABASE
        raise CommandError(TOO_OLD.format(place=location, advice=advice))
