"""`manage.py backup` and `restore`: everything is in one file, and comes back as it was."""

import io
import tarfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import connection

from agents import runs
from agents.knowledge.files import store
from agents.management import backup
from agents.models import ConfigurationChange, McpServer, Run, StoredFile
from chat.models import ChatSession
from tests import services, tables
from tests.conftest import run_question

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def move(settings, tmp_path, monkeypatch):
    """Continue with an empty database and an empty data folder, as on a new machine."""
    if connection.vendor == "postgresql":
        monkeypatch.setenv("PATH", str(services._postgresql_programs()), prepend=":")

    @contextmanager
    def move():
        use_folder(settings, tmp_path / "new")
        if connection.vendor == "sqlite":
            with tables.connected_to(settings.DATA_DIR / "ashiato.sqlite3"):
                yield settings.DATA_DIR
            return
        restored = f"{connection.settings_dict['NAME']}_restored"
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {restored} TEMPLATE template0")
        try:
            with tables.connected_to(restored):
                yield settings.DATA_DIR
        finally:
            with connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {restored}")

    use_folder(settings, tmp_path / "old")
    return move


def use_folder(settings, folder: Path) -> None:
    folder.mkdir()
    settings.DATA_DIR = folder
    files = {**settings.STORAGES["files"], "OPTIONS": {"location": folder / "files"}}
    settings.STORAGES = {**settings.STORAGES, "files": files}


def content() -> dict[str, list[str]]:
    """Return the rows of all tables, but for the notes that something has changed."""
    connection.close()
    names = {*connection.introspection.table_names()} - {ConfigurationChange._meta.db_table}
    with connection.cursor() as cursor:
        return {name: rows(cursor, name) for name in names}


def rows(cursor, table: str) -> list[str]:
    cursor.execute(f'SELECT * FROM "{table}"')
    return sorted(map(repr, cursor.fetchall()))


def test_a_restored_backup_has_every_chat_trace_and_file(
    move, agent, person, settings, tmp_path
):
    ChatSession.objects.create(user=person, title="Trip to 京都")
    run = async_to_sync(answer)("What is 6 * 7?", person)
    store.save(b"report", name="report.txt", owner=person)
    work = settings.DATA_DIR / "mcp" / "1" / "work"
    work.mkdir(parents=True)
    (work / "notes.txt").write_text("remembered")
    (work / "link").symlink_to("notes.txt")
    (settings.DATA_DIR / "secret_key").write_text("never in a backup")
    call_command("migrate", verbosity=0)  # as at every start: it gives users their role
    before = content()
    file = tmp_path / "backup.tar.gz"
    backup.create(file)

    with move() as folder:
        manifest = backup.restore(file)
        assert content() == before
        assert Run.objects.get(pk=run.pk).events.exists()
        assert (folder / "mcp/1/work/link").read_text() == "remembered"
        assert read(StoredFile.objects.get()) == b"report"
    assert (manifest["missing_files"], manifest["unreadable_secrets"]) == ([], [])
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as archive:
        assert "secret_key" not in str(archive.getnames())


async def answer(question: str, person) -> Run:
    try:
        return await run_question(question, user=person)
    finally:
        await runs.shut_down()


def read(file: StoredFile) -> bytes:
    with file.open() as content:
        return content.read()


def test_a_file_deleted_while_the_backup_is_made_leaves_no_gap(move, tmp_path, monkeypatch):
    """The snapshot has the file's row, and the bytes are gone before they are read."""
    take_snapshot = backup._snapshot
    late = []

    @contextmanager
    def snapshot():
        if not late:
            late.append(store.save(b"late", name="late.txt", owner=None))
        with take_snapshot() as (path, digests):
            store.release([late[0].pk])
            yield path, digests

    monkeypatch.setattr(backup, "_snapshot", snapshot)
    backup.create(tmp_path / "backup.tar")

    with move():
        assert backup.restore(tmp_path / "backup.tar")["missing_files"] == []
        assert not StoredFile.objects.exists()


def test_a_restore_names_the_secrets_that_need_another_key(move, tmp_path, settings):
    McpServer.objects.create(name="crm", url="https://crm.example", headers={"X-Key": "s3cret"})
    backup.create(tmp_path / "backup.tar")
    settings.ENCRYPTION_KEYS = ["another"]

    with move():
        [secret] = backup.restore(tmp_path / "backup.tar")["unreadable_secrets"]
    assert "crm" in secret


def test_a_backup_that_is_cut_off_is_refused_and_changes_nothing(move, tmp_path):
    file = tmp_path / "backup.tar"
    backup.create(file)
    file.write_bytes(file.read_bytes()[:-20_000])

    with move():
        with pytest.raises(backup.BackupError):
            backup.restore(file)
        assert connection.introspection.table_names() == []


def test_a_backup_with_an_entry_behind_a_link_writes_nothing_there(move, tmp_path):
    backup.create(tmp_path / "backup.tar")
    important = tmp_path / "important"
    important.write_text("as it was")
    with (
        tarfile.open(tmp_path / "backup.tar") as original,
        tarfile.open(tmp_path / "hostile.tar", "w") as hostile,
    ):
        folder = tarfile.TarInfo("mcp")
        folder.type = tarfile.DIRTYPE
        hostile.addfile(folder)
        for name, address in {"mcp/a": tmp_path, "mcp/a/important": "/elsewhere"}.items():
            link = tarfile.TarInfo(name)
            link.type = tarfile.SYMTYPE
            link.linkname = str(address)
            hostile.addfile(link)
        for member in original:
            hostile.addfile(member, original.extractfile(member))

    with move(), pytest.raises(backup.BackupError, match="behind a link"):
        backup.restore(tmp_path / "hostile.tar")
    assert important.read_text() == "as it was"


@pytest.mark.parametrize("manifest", [b"[1]", b"\xff\xfe{", b'{"format": 1}'])
def test_a_backup_with_an_invalid_manifest_is_refused(manifest, move, tmp_path):
    with tarfile.open(tmp_path / "backup.tar", "w") as archive:
        entry = tarfile.TarInfo(backup.MANIFEST)
        entry.size = len(manifest)
        archive.addfile(entry, io.BytesIO(manifest))

    with move(), pytest.raises(backup.BackupError, match="complete"):
        backup.restore(tmp_path / "backup.tar")


def test_a_database_in_use_is_never_overwritten(move, person, tmp_path):
    backup.create(tmp_path / "backup.tar")

    with pytest.raises(backup.BackupError, match="isn't empty"):
        backup.restore(tmp_path / "backup.tar")
