"""Two processes read documents at the same time, die and are too late."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.db import connection
from django.utils import timezone

from agents.knowledge import ingestion, sources
from agents.knowledge.files import save
from agents.models import Chunk, Collection, Document, DocumentPart, DocumentSource, StoredFile
from tests.knowledge import ingestion_process

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases,
    pytest.mark.slow,
]

Start = Callable[..., "subprocess.Popen[str]"]
SECONDS = 60


@pytest.fixture
def start(tmp_path: Path, settings: Any) -> Iterator[Start]:
    """Start a process with this test's database and files."""
    storage = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(tmp_path / "files")},
    }
    settings.STORAGES = settings.STORAGES | {"files": storage}
    database = {"NAME": str(connection.settings_dict["NAME"])}
    about = json.dumps(
        {
            "database": database,
            "storage": storage,
            "lease": 2,
            "folders": [str(tmp_path / "shelf")],
        }
    )
    running: list[subprocess.Popen[str]] = []

    def start_process(task: str, fault: str = "") -> "subprocess.Popen[str]":
        faults = {"ASHIATO_FAULTS": "1", "ASHIATO_FAULT": fault} if fault else {}
        child = subprocess.Popen(
            [sys.executable, "-m", ingestion_process.__name__, about, task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **faults},
        )
        running.append(child)
        return child

    yield start_process
    for child in running:
        child.kill()
        child.communicate()


def add(*names: str) -> None:
    collection = Collection.objects.create(name="Birds")
    for name in names:
        stored = save(f"The {name} nests here.".encode(), name=name, owner=None)
        ingestion.add_file(collection, None, name, stored)


@pytest.mark.thorough
def test_two_processes_index_each_document_once(start: Start) -> None:
    workers = [start("work"), start("work")]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    add(*(f"{number}.md" for number in range(8)))
    read = [set(worker.communicate(timeout=SECONDS)[0].split()) for worker in workers]
    assert not read[0] & read[1]
    assert len(read[0] | read[1]) == 8
    assert Chunk.objects.count() == 8
    assert set(Document.objects.values_list("status", "lease_until")) == {("ready", None)}


@pytest.mark.thorough
def test_a_killed_process_leaves_its_document_to_another(start: Start) -> None:
    add("heron.md")
    assert start("die").wait(SECONDS) < 0
    assert Document.objects.get().status == "reading"
    assert start("work").communicate(timeout=SECONDS)[0].split() == ["ready", "heron.md"]
    assert Document.objects.get().status == "ready"


@pytest.mark.thorough
def test_a_document_deleted_while_another_process_reads_it_leaves_nothing(start: Start) -> None:
    add("heron.md")
    reader = start("linger")
    assert reader.stdout is not None
    assert reader.stdout.readline() == "read\n"
    ingestion.delete(Document.objects.get())
    assert reader.communicate("go on\n", timeout=SECONDS)[0] == "over\n"
    for model in (Document, DocumentPart, Chunk, StoredFile):
        assert not model._default_manager.exists()
    assert not [name for name in storages["files"].listdir("")[1] if name]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "fault", ["during_source_listing:3", "before_source_document:2", "during_source_deletion:2"]
)
def test_a_killed_check_loses_nothing_and_does_nothing_twice(
    fault: str, start: Start, tmp_path: Path, settings: Any
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    settings.SOURCE_FOLDERS = [str(shelf)]
    for number in range(4):
        (shelf / f"old{number}.md").write_text(f"The heron {number} nests here.")
    source = DocumentSource.objects.create(
        collection=Collection.objects.create(name="Birds"),
        kind="folder",
        name="Shelf",
        place={"path": str(shelf)},
    )
    sources.check_soon(source)
    sources.check_due()
    for number in range(4):
        if number:
            (shelf / f"old{number}.md").unlink()
        (shelf / f"new{number}.md").write_text(f"The bittern {number} booms.")
    (shelf / "old0.md").write_text("The heron has left.")
    sources.check_soon(source)
    assert start("check", fault).wait(SECONDS) < 0
    source.refresh_from_db()
    assert source.lease

    assert sources.check_due() == 0  # its lease hasn't ended
    DocumentSource.objects.update(lease_until=timezone.now())
    assert sources.check_due() == 1
    ingestion.process_waiting()
    ready = Document.objects.filter(status="ready", origin=source)
    names = ["new0", "new1", "new2", "new3", "old0"]
    assert sorted(ready.values_list("title", flat=True)) == names
    assert Document.objects.count() == Chunk.objects.count() == 5
    assert StoredFile.objects.count() == 5
    source.refresh_from_db()
    assert (source.lease, source.problem) == ("", "")
