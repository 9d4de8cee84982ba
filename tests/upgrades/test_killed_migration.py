"""A migration that is killed before it is recorded leaves nothing behind."""

import pytest
from django.db import connection, migrations, models
from django.db.migrations.state import ProjectState

from agents.management.commands.migrate import AtomicExecutor

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(Exception):
    """Stands for a signal."""


class AddThings(migrations.Migration):
    # The index is a statement that Django defers to the end.
    operations = [
        migrations.CreateModel(
            "Thing",
            [
                ("id", models.AutoField(primary_key=True)),
                ("name", models.CharField(max_length=9, db_index=True)),
            ],
        )
    ]


def test_tables_are_created_and_recorded_together(monkeypatch):
    def die(migration):
        raise Killed

    executor = AtomicExecutor(connection)
    monkeypatch.setattr(executor, "record_migration", die)
    with pytest.raises(Killed):
        executor.apply_migration(ProjectState(), AddThings("0001_things", "things"))

    assert "things_thing" not in connection.introspection.table_names()
