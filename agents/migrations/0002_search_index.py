from django.db import migrations

CREATE = """
CREATE VIRTUAL TABLE agents_chunk_index
USING fts5(title, heading, terms, tokenize = 'porter unicode61')
"""


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(CREATE)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TABLE agents_chunk_index")


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]

    operations = [migrations.RunPython(create, drop)]
