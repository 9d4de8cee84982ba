"""Creates everything needed before a page is served, once for all processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection

# Any number that no one else locks.
LOCK_ID = 0x417368


class Command(BaseCommand):
    help = "Migrates the database and creates the first account and the sample data."

    def handle(self, **options: Any) -> None:
        with _advisory_lock():
            call_command("migrate", verbosity=0)
            call_command("seed_demo", stdout=self.stdout)


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
