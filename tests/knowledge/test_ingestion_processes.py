"""Two processes read documents at the same time, die and are too late."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.db import connection

from agents.knowledge import ingestion
from agents.knowledge.files import save
from agents.models import Chunk, Collection, Document, DocumentPart, StoredFile
from tests.knowledge import ingestion_process

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases,
    pytest.mark.slow,
]

Start = Callable[[str], "subprocess.Popen[str]"]
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
    about = json.dumps({"database": database, "storage": storage, "lease": 2})
    running: list[subprocess.Popen[str]] = []

    def start_process(task: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen(
            [sys.executable, "-m", ingestion_process.__name__, about, task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
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
