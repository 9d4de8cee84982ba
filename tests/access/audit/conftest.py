import pytest
from django.db import connection


@pytest.fixture
def tamper(db):
    """Write to the database, bypassing its triggers."""

    def execute(sql, *values):
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET session_replication_role = replica")
                cursor.execute(sql, values)
                cursor.execute("SET session_replication_role = origin")
                return
            known = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = dict(cursor.execute(known).fetchall())
            for name in triggers:
                cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute(sql, values)
            for made in triggers.values():
                cursor.execute(made)

    return execute
