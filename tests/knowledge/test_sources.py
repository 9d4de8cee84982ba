"""A collection follows a place: what is new, changed or gone there is so in the collection."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from agents.db import claims, jobs
from agents.knowledge import ingestion, sources
from agents.knowledge.files import save
from agents.knowledge.sources import PlaceFile, PlaceUnreadable, checking, folder
from agents.models import Chunk, Collection, Document, DocumentSource
from agents.models.secret import EncryptedValue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, settings: Any) -> None:
    settings.STORAGES = settings.STORAGES | {
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        }
    }


@pytest.fixture
def shelf(tmp_path: Path, settings: Any) -> Path:
    """A folder that sources can read."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    settings.SOURCE_FOLDERS = [str(shelf)]
    return shelf


@pytest.fixture
def source(shelf: Path) -> DocumentSource:
    collection = Collection.objects.create(name="Birds")
    return DocumentSource.objects.create(
        collection=collection, kind="folder", name="Shelf", place={"path": str(shelf)}
    )


def check(source: DocumentSource) -> str:
    """Check a source now, read what it queued, and return its problem."""
    sources.check_soon(source)
    sources.check_due()
    ingestion.process_waiting()
    source.refresh_from_db()
    assert (source.lease, source.lease_until) == ("", None)
    return source.problem


def names(source: DocumentSource) -> list[str]:
    return sorted(source.documents.values_list("source", flat=True))


def texts(source: DocumentSource) -> list[str]:
    chunks = Chunk.objects.filter(document__origin=source).order_by("document__source")
    return list(chunks.values_list("text", flat=True))


class Listed:
    """A place that lists what a test says, and fails where it says so."""

    version = ""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *listed: PlaceFile) -> None:
        self.listed: list[PlaceFile] = list(listed)
        self.problem: Exception | None = None
        self.read_keys: list[str] = []
        monkeypatch.setitem(checking._openers, "folder", self.open)

    @contextmanager
    def open(self, source: DocumentSource, heartbeat: Any) -> Iterator["Listed"]:
        yield self

    def files(self) -> Iterator[PlaceFile]:
        yield from self.listed
        if self.problem is not None:
            raise self.problem

    def read(self, file: PlaceFile) -> Iterator[bytes]:
        self.read_keys.append(file.key)
        yield f"{file.key} {file.version}".encode(errors="replace")


def item(name: str, version: str = "1", **values: Any) -> PlaceFile:
    return PlaceFile(**{"key": name, "version": version, "name": name} | values)


def test_new_changed_and_deleted_files_are_followed(
    shelf: Path, source: DocumentSource
) -> None:
    (shelf / "reeds").mkdir()
    (shelf / "heron.md").write_text("The heron nests in reeds.")
    (shelf / "reeds" / "bittern.txt").write_text("The bittern booms.")
    assert check(source) == ""
    assert names(source) == ["Shelf/heron.md", "Shelf/reeds/bittern.txt"]
    heron = Document.objects.get(source="Shelf/heron.md")
    assert (heron.status, heron.owner, heron.title) == ("ready", None, "heron")

    (shelf / "heron.md").write_text("The heron fishes at dawn.")
    (shelf / "reeds" / "bittern.txt").unlink()
    assert check(source) == ""
    assert texts(source) == ["The heron fishes at dawn."]
    assert Document.objects.get().pk == heron.pk


def test_unchanged_files_are_not_read_again(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"), item("b.md"))
    check(source)
    place.listed[1] = item("b.md", "2")
    check(source)
    assert sorted(place.read_keys) == ["a.md", "b.md", "b.md"]
    assert texts(source) == ["a.md 1", "b.md 2"]


def test_a_place_with_the_same_version_is_not_listed(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"))
    place.version = "7"
    check(source)
    place.listed.append(item("b.md"))
    check(source)
    assert names(source) == ["Shelf/a.md"]
    place.version = "8"
    check(source)
    assert len(names(source)) == 2


def test_a_check_is_due_after_the_interval_and_paused_ones_never(
    shelf: Path, source: DocumentSource
) -> None:
    check(source)
    assert source.next_check_at is not None
    assert source.next_check_at - timezone.now() > timezone.timedelta(hours=23)
    assert sources.check_due() == 0
    assert sources.check_due(timezone.now() + timezone.timedelta(hours=25)) == 1
    DocumentSource.objects.update(enabled=False, next_check_at=timezone.now())
    assert sources.check_due() == 0


def test_links_hidden_and_special_files_are_not_read(
    tmp_path: Path, shelf: Path, source: DocumentSource
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("The key is under the mat.")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "note.md").write_text("Private.")
    (shelf / "link.md").symlink_to(secret)
    (shelf / "linked").symlink_to(tmp_path / "outside")
    (shelf / ".git").mkdir()
    (shelf / ".git" / "note.md").write_text("Hidden.")
    (shelf / ".draft.md").write_text("Hidden.")
    (shelf / "program.exe").write_bytes(b"MZ")
    os.mkfifo(shelf / "pipe.md")
    (shelf / "heron.md").write_text("The heron nests in reeds.")
    assert check(source) == ""
    assert names(source) == ["Shelf/heron.md"]
    assert source.skipped == 1


def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_followed(
    tmp_path: Path, shelf: Path, source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("The key is under the mat.")
    (shelf / "reeds").mkdir()
    (shelf / "reeds" / "heron.md").write_text("The heron nests in reeds.")
    (shelf / "tern.md").write_text("The tern dives.")
    read = folder._Folder.read

    def swap(self: Any, file: PlaceFile) -> Iterator[bytes]:
        if file.key == "tern.md":
            (shelf / "tern.md").unlink()
            (shelf / "tern.md").symlink_to(secret)
        else:
            shutil.rmtree(shelf / "reeds")
            (tmp_path / "heron.md").write_text("The heron nests in reeds.")
            (shelf / "reeds").symlink_to(tmp_path)
        return read(self, file)

    monkeypatch.setattr(folder._Folder, "read", swap)
    assert "2 files couldn't be read" in check(source)
    assert names(source) == []


def test_a_file_that_changes_while_it_is_read_waits_for_the_next_check(
    shelf: Path, source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shelf / "heron.md").write_text("The heron nests in reeds.")
    read = os.read

    def change(descriptor: int, count: int) -> bytes:
        content = read(descriptor, count)
        if content.startswith(b"The heron nests"):
            (shelf / "heron.md").write_text("The heron fishes.")
        return content

    monkeypatch.setattr(folder.os, "read", change)
    assert "changed while it was read" in check(source)
    assert names(source) == []
    monkeypatch.undo()
    check(source)


@pytest.mark.parametrize("path", ["/", "/etc", "../..", "{shelf}/../secret", "{shelf}x", ""])
def test_only_allowed_folders_are_read(
    path: str, tmp_path: Path, shelf: Path, source: DocumentSource
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "shelfx").mkdir()
    source.place = {"path": path.format(shelf=shelf)}
    source.save()
    # The same sentence whether there is such a folder or not.
    assert check(source) == folder.NOT_ALLOWED
    assert names(source) == []


def test_a_link_to_another_folder_is_not_allowed_but_one_within_is(
    tmp_path: Path, shelf: Path
) -> None:
    (shelf / "a" / "b").mkdir(parents=True)
    (shelf / "inner").symlink_to(shelf / "a")
    (shelf / "outer").symlink_to(tmp_path)
    assert folder.find_folder(str(shelf / "inner" / "b")) == (shelf, ("a", "b"))
    with pytest.raises(PlaceUnreadable):
        folder.find_folder(str(shelf / "outer"))


def test_a_list_that_ends_early_deletes_nothing(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"), item("b.md"))
    check(source)
    place.listed.pop()
    place.problem = PlaceUnreadable("The server is away.")
    assert check(source) == "The server is away."
    assert len(names(source)) == 2
    place.problem = RuntimeError("a bug")
    assert check(source) == checking.CRASHED
    assert len(names(source)) == 2
    monkeypatch.setattr(checking, "MAX_FILES", 0)
    place.problem = None
    assert check(source).startswith("Only the first")
    assert len(names(source)) == 2


def test_an_endless_list_ends_and_a_long_one_is_cut(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch)
    monkeypatch.setattr(checking, "MAX_LISTED", 2_000)

    def endless() -> Iterator[PlaceFile]:
        number = 0
        while True:
            number += 1
            yield item(f"{number}.exe")

    monkeypatch.setattr(place, "files", endless)
    assert check(source) == checking.TOO_MANY.fill(count=0, limit="2,000")


def test_losing_more_than_half_waits_for_an_administrator(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, *(item(f"{number}.md") for number in range(12)))
    check(source)
    place.listed = [item("new.md")]
    assert check(source) == checking.MISSING.fill(missing=12, count=12)
    assert (len(names(source)), source.missing) == (13, 12)
    sources.check_soon(source, deletable=11)  # what was approved isn't what is missing now
    check(source)
    assert len(names(source)) == 13
    sources.check_soon(source, deletable=12)
    assert check(source) == ""
    assert (names(source), source.missing, source.deletable) == (["Shelf/new.md"], 0, 0)


def test_an_empty_place_may_not_be_connected(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"), item("b.md"))
    check(source)
    place.listed = []
    assert check(source) == checking.MISSING.fill(missing=2, count=2)
    assert len(names(source)) == 2
    sources.check_soon(source, deletable=2)
    place.problem = PlaceUnreadable("It is away.")
    check(source)
    place.problem = None
    check(source)  # the approval was for the check before
    assert len(names(source)) == 2


def test_an_upload_over_a_sources_document_is_kept(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"), item("b.md"))
    check(source)
    stored = save([b"Mine."], name="a.md", owner=None)
    ingestion.add_file(source.collection, None, "Shelf/a.md", stored)
    place.listed = [item("b.md")]
    check(source)
    live = Document.objects.filter(collection=source.collection).order_by("source")
    assert list(live.values_list("source", flat=True)) == ["Shelf/a.md", "Shelf/b.md"]
    place.listed = [item("a.md"), item("b.md")]
    check(source)
    assert live.count() == 3


def test_a_document_deleted_while_its_new_version_is_read_does_not_come_back(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch, administrator: Any
) -> None:
    from agents.web.library import deletion

    place = Listed(monkeypatch, item("a.md"))
    check(source)
    document = Document.objects.get(source="Shelf/a.md")
    removals = []

    def read(file: PlaceFile) -> Iterator[bytes]:
        removals.append(deletion.delete_documents(source.collection, [document], administrator))
        yield b"Two."

    monkeypatch.setattr(place, "read", read)
    place.listed = [item("a.md", "2")]
    check(source)
    live = Document.objects.filter(collection=source.collection)
    assert not live.exists()
    deletion.DeletedDocuments().restore(removals[0], administrator)
    assert live.count() == 1


def test_a_document_that_a_user_deleted_stays_deleted(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch, administrator: Any
) -> None:
    from agents.web.library import deletion

    Listed(monkeypatch, item("a.md"), item("b.md"))
    check(source)
    document = Document.objects.get(source="Shelf/a.md")
    removal = deletion.delete_documents(source.collection, [document], administrator)
    check(source)
    live = Document.objects.filter(collection=source.collection)
    assert list(live.values_list("source", flat=True)) == ["Shelf/b.md"]
    deletion.DeletedDocuments().restore(removal, administrator)
    check(source)
    assert live.count() == 2


def test_a_document_of_someone_else_keeps_its_name(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = save(b"By hand.", name="a.md", owner=None)
    mine = ingestion.add_file(source.collection, None, "Shelf/a.md", stored)
    Listed(monkeypatch, item("a.md"), item("./a.md"), item("x/../../a.md"), item("/a.md"))
    check(source)
    assert len(set(names(source))) == 2
    assert mine.source not in names(source)
    assert not any(
        part in {"", ".", ".."} for name in names(source) for part in name.split("/")
    )


@pytest.mark.parametrize(
    ("name", "visible"),
    [
        ("gpj\u202e.md", "gpj .md"),
        ("a\nb\x00c\x1b[2J.md", "a bc [2J.md"),
        ("\udce9.md", "?.md"),
        ("x\\..\\..\\windows.md", "x/windows.md"),
        ("x" * 900 + ".md", None),
    ],
)
def test_names_lead_nowhere_and_hide_nothing(
    name: str, visible: str | None, source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    Listed(monkeypatch, item(name))
    assert check(source) == ""
    [stored] = names(source)
    assert stored.endswith(visible or "x.md")
    assert stored.isprintable()
    assert len(stored) <= 500


def test_files_that_are_too_large_are_named_and_the_others_read(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("large.md", size=10**9), item("a.md"))
    assert check(source).startswith("large.md couldn't be read.")
    assert names(source) == ["Shelf/a.md"]
    monkeypatch.setattr(place, "read", lambda file: (b"x" * 1_000_000 for _ in range(10**6)))
    place.listed = [item("endless.md"), item("a.md")]
    assert check(source).startswith("endless.md couldn't be read.")
    assert not list(Path(storages["files"].location).glob("incoming/*"))


def test_a_source_that_is_removed_or_changed_ends_its_check(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, *(item(f"{number}.md") for number in range(3)))

    def read(file: PlaceFile) -> Iterator[bytes]:
        if source.documents.exists():
            DocumentSource.objects.update(**claims.NO_LEASE)
        yield file.key.encode()

    monkeypatch.setattr(place, "read", read)
    check(source)
    assert len(names(source)) == 1


def test_two_processes_do_not_check_a_source_at_once(source: DocumentSource) -> None:
    sources.check_soon(source)
    source.refresh_from_db()
    assert claims.take(source)
    assert sources.check_due() == 0
    claims.release(source)
    assert sources.check_due() == 1


def test_a_stop_gives_the_source_back(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"), item("b.md"))

    def stop(file: PlaceFile) -> Iterator[bytes]:
        jobs.stopping.set()
        yield b"text"

    monkeypatch.setattr(place, "read", stop)
    try:
        check(source)
    finally:
        jobs.stopping.clear()
    assert source.checked_at is None
    monkeypatch.undo()
    assert sources.check_due() == 1


def test_who_asks_during_a_check_gets_another_one(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"))

    def read(file: PlaceFile) -> Iterator[bytes]:
        sources.check_soon(source)
        yield b"text"

    monkeypatch.setattr(place, "read", read)
    sources.check_soon(source)
    assert (sources.check_due(), sources.check_due()) == (1, 1)


def test_secrets_are_encrypted(source: DocumentSource) -> None:
    source.secret = "hunter2"
    source.save()
    source.refresh_from_db()
    assert isinstance(source.secret, EncryptedValue)
    assert "hunter2" not in str(source.secret)
    assert source.secret.reveal() == "hunter2"


def test_a_place_that_takes_long_is_read_in_turns_with_others(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("a.md"), item("b.md", ""))
    monkeypatch.setattr(checking, "HEARTBEAT_SECONDS", 0)

    def read(file: PlaceFile) -> Iterator[bytes]:
        yield b"text"
        monkeypatch.setattr(checking, "CHECK_SECONDS", -1)

    monkeypatch.setattr(place, "read", read)
    assert check(source) == ""
    assert len(names(source)) == 1
    assert source.next_check_at is not None
    assert source.next_check_at <= timezone.now()
    monkeypatch.setattr(checking, "CHECK_SECONDS", 600)
    assert check(source) == ""
    assert len(names(source)) == 2
    monkeypatch.setattr(checking, "CHECK_SECONDS", -1)
    assert check(source) == checking.TOO_SLOW


def test_documents_are_limited_together(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    Listed(monkeypatch, *(item(f"{number}.md") for number in range(5)))
    monkeypatch.setattr(checking, "MAX_BYTES", 10)
    assert check(source) == checking.TOO_MUCH.fill(size=0)
    assert len(names(source)) == 2


def test_what_a_server_says_is_displayed_without_control_characters(
    source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Listed(monkeypatch, item("\ud800.md"))
    place.problem = PlaceUnreadable("No\x00\x1e\u202e way" + "!" * 9_000)
    problem = check(source)
    assert problem.startswith("No way!!")
    assert len(problem) == 500
