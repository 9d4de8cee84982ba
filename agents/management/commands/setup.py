"""Creates everything needed before a page is served, once for all processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

# Any number that no one else locks.
LOCK_ID = 0x417368


class Command(BaseCommand):
    help = "Migrates the database and creates the first account and the sample data."

    def handle(self, **options: Any) -> None:
        with _advisory_lock():
            if _has_pending_migrations():
                call_command("migrate", verbosity=0)
            else:
                # A killed start may have ended between the last migration and this.
                emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
            call_command("seed_demo", stdout=self.stdout)


def _has_pending_migrations() -> bool:
    """Whether `migrate` is needed, which builds all models twice before it can tell."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


@contextmanager
def _advisory_lock() -> Iterator[None]:
    """Lock against concurrent starts; SQLite needs no lock for this."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK_ID])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK_ID])
