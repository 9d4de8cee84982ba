"""Documents that were there before collections are for everyone, as they were."""

from django.db import migrations
from django.db.models import F

NAME = "Documents"


def fill(apps, schema_editor):
    documents = apps.get_model("agents", "Document").objects.all()
    if not documents.exists():
        return
    collection = apps.get_model("agents", "Collection").objects.create(name=NAME, is_open=True)
    documents.update(collection=collection, status="ready", indexed_at=F("added_at"))


class Migration(migrations.Migration):
    dependencies = [("agents", "0014_knowledge")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
