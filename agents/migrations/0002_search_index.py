"""The full-text index of the passages: FTS5 on SQLite, tsvector on PostgreSQL."""

from django.db import migrations

SQLITE = [
    """
CREATE VIRTUAL TABLE agents_chunk_index
USING fts5(title, heading, terms, tokenize = 'porter unicode61')
"""
]
# Every matching passage is ranked by the short vector `telling`, so it stays in its row. New
# words wait in the index's pending list, which each query scans: at most one megabyte.
POSTGRESQL = [
    """
    CREATE TABLE agents_chunk_index (
        rowid bigint PRIMARY KEY,
        length float NOT NULL,
        words tsvector NOT NULL,
        telling tsvector NOT NULL
    )
    """,
    "ALTER TABLE agents_chunk_index ALTER COLUMN telling SET STORAGE MAIN",
    """
    CREATE INDEX agents_chunk_index_words
    ON agents_chunk_index USING gin (words) WITH (gin_pending_list_limit = 1024)
    """,
]
STATEMENTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL}


def create(apps, schema_editor):
    for statement in STATEMENTS[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop(apps, schema_editor):
    schema_editor.execute("DROP TABLE agents_chunk_index")


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_tables")]

    operations = [migrations.RunPython(create, drop)]
