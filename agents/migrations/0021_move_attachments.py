"""Moves attachments of runs out of the database, each content once, one row at a time.

What is interrupted is continued by the next start: a moved row has no bytes of its own.
"""

from hashlib import sha256
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import migrations, transaction

BATCH = 200


def move(apps: Any, schema_editor: Any) -> None:
    attachments = apps.get_model("agents", "RunAttachment").objects.using(
        schema_editor.connection.alias
    )
    last = 0
    while pks := list(
        attachments.filter(pk__gt=last, file=None, data__isnull=False)
        .order_by("pk")
        .values_list("pk", flat=True)[:BATCH]
    ):
        for pk in pks:
            with transaction.atomic(using=schema_editor.connection.alias):
                _move_row(apps, attachments.get(pk=pk))
        last = pks[-1]


def _move_row(apps: Any, row: Any) -> None:
    data = bytes(row.data)
    digest = sha256(data).hexdigest()
    files = apps.get_model("agents", "StoredFile").objects.using(row._state.db)
    about = {"size": len(data), "mime_type": row.mime_type}
    file, _is_new = files.get_or_create(digest=digest, defaults=about)
    storage, path = storages["files"], f"{digest[:2]}/{digest}"
    if not storage.exists(path):
        storage.save(path, ContentFile(data))
    row.file, row.data = file, None
    row.save(update_fields=["file", "data"])


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("agents", "0020_stored_attachments")]
    operations = [migrations.RunPython(move, migrations.RunPython.noop)]
