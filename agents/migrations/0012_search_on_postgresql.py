from django.db import migrations

# The short vector is read for every passage that has a word, so it is kept in its row. Words
# wait to be sorted into the index, and each question reads those that wait: a megabyte at most.
CREATE = [
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


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for statement in CREATE:
            schema_editor.execute(statement)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TABLE agents_chunk_index")


class Migration(migrations.Migration):
    dependencies = [("agents", "0011_live_indexes")]

    operations = [migrations.RunPython(create, drop)]
