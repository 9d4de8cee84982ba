"""Attachments that were saved in the database are moved to the store."""

from hashlib import sha256
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from agents.models import Run, RunAttachment, StoredFile
from tests.pictures import png

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folder")]


def old_attachment(run, data):
    about = {"digest": sha256(data).hexdigest(), "size": len(data), "mime_type": "image/png"}
    return RunAttachment.objects.create(run=run, data=data, **about)


def move_all():
    move = import_module("agents.migrations.0021_move_attachments").move
    move(apps, SimpleNamespace(connection=connection))


def content_of(row):
    with row.open() as content:
        return content.read()


def test_each_content_is_moved_once_and_still_opens(person):
    runs = [Run.objects.create(user=person, topic=f"chat.{n}", query="?") for n in range(2)]
    rows = [old_attachment(run, png()) for run in runs]
    assert content_of(rows[0]) == png()

    move_all()

    moved = list(RunAttachment.objects.select_related("file"))
    assert [content_of(row) for row in moved] == [png(), png()]
    assert {row.data for row in moved} == {None}
    assert StoredFile.objects.count() == 1


def test_a_file_goes_with_the_last_run_that_has_it(
    person, folder, django_capture_on_commit_callbacks
):
    runs = [Run.objects.create(user=person, topic=f"chat.{n}", query="?") for n in range(2)]
    for run in runs:
        old_attachment(run, png())
    move_all()
    for left in (1, 0):
        with django_capture_on_commit_callbacks(execute=True):
            runs.pop().delete()
        assert StoredFile.objects.count() == left
    assert not [path for path in folder.rglob("*") if path.is_file()]
