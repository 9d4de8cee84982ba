"""A backup of the installation as one file: the database, uploaded files and data folders.

It is consistent while the server runs: files never change, they are only added and deleted, so
those of now are saved first, then a snapshot of the database, then the files that only the
snapshot knows. Keys aren't in it: next to the secrets they encrypt they would protect nothing.
"""

import io
import json
import os
import shutil
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from django.conf import settings
from django.core.files.storage import storages
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from agents.db.fast_writes import concrete_field
from agents.knowledge.files import folder_identity, store
from agents.management.commands.rotate_keys import can_read, encrypted_fields
from agents.models import StoredFile
from agents.runs.observability.process_status import version
from agents.tools.sandbox import unconfined

FORMAT = 1
MANIFEST = "backup.json"  # the last entry: a file without it is incomplete
MANIFEST_FIELDS = {"version", "created", "database", "database_sha256", "files"}
DATABASE = "database"
FILES = "files"
# Of the data folder. What isn't listed can be made again, or is a key.
FOLDERS = ("imports", "mcp", "databases")
SQLITE_HEADER = b"SQLite format 3\0"
MAX_SNAPSHOTS = 3
CHUNK_BYTES = 256 * 1024


class BackupError(Exception):
    """Raised when a backup can't be made or restored; says why and what to do."""


def create(target: Path) -> dict[str, Any]:
    """Write a backup to this path, and return its manifest."""
    if target.exists():
        raise BackupError(f"{target} already exists. Choose another name.")
    draft = target.with_name(f"{target.name}.partial")
    mode: Any = "w:gz" if target.suffix in {".gz", ".tgz"} else "w"
    try:
        with (
            open(draft, "wb", opener=_open_private) as file,
            tarfile.open(fileobj=file, mode=mode, format=tarfile.PAX_FORMAT) as archive,
        ):
            manifest = _write(archive)
            _add_stream(archive, MANIFEST, io.BytesIO(json.dumps(manifest, indent=1).encode()))
        with draft.open("rb") as finished_draft:
            os.fsync(finished_draft.fileno())
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _write(archive: tarfile.TarFile) -> dict[str, Any]:
    saved: set[str] = set()
    current = StoredFile.objects.values_list("digest", flat=True)
    _add_files(archive, list(current), saved)
    for attempt in range(1, MAX_SNAPSHOTS + 1):
        with _snapshot() as (database, digests):
            missing = _add_files(archive, digests, saved)
            # A file that was deleted after this snapshot isn't in the next one.
            if missing and attempt < MAX_SNAPSHOTS:
                continue
            with database.open("rb") as file:
                digest = _add_stream(archive, DATABASE, file)
            break
    for name in FOLDERS:
        _add_folder(archive, settings.DATA_DIR / name, name)
    return {
        "format": FORMAT,
        "version": version(),
        "created": timezone.now().isoformat(timespec="seconds"),
        "database": connection.vendor,
        "database_sha256": digest,
        "files": len(saved),
        "missing_files": sorted(missing),
    }


@contextmanager
def _snapshot() -> Iterator[tuple[Path, list[str]]]:
    """Yield the database at one moment as a file, and the digests of its stored files."""
    with tempfile.TemporaryDirectory(dir=settings.DATA_DIR, prefix="backup-") as folder:
        path = Path(folder, DATABASE)
        if connection.vendor == "sqlite":
            _copy_sqlite(Path(connection.settings_dict["NAME"]), path)
            with closing(sqlite3.connect(path)) as copy:
                rows = copy.execute(f"SELECT digest FROM {StoredFile._meta.db_table}")
                digests = [digest for (digest,) in rows]
        else:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute("SELECT pg_export_snapshot()")
                snapshot = cursor.fetchone()[0]
                digests = list(StoredFile.objects.values_list("digest", flat=True))
                _run_postgresql(
                    "pg_dump", "--format=custom", f"--snapshot={snapshot}", f"--file={path}"
                )
        yield path, digests


def _copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database as of one moment; writers go on meanwhile."""
    address = f"{source.absolute().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=30)) as database,
        closing(sqlite3.connect(target)) as copy,
    ):
        database.backup(copy)


def _run_postgresql(program: str, *arguments: str) -> None:
    """Run a client program of PostgreSQL on our database."""
    # Django's own arguments for psql; the password is in the environment, not in the list.
    command, environment = connection.client.settings_to_cmd_args_env(
        connection.settings_dict, []
    )
    *arguments_of_psql, database = command[1:]
    argv = [program, "--no-owner", "--no-privileges", *arguments, *arguments_of_psql]
    try:
        ended = unconfined.run(
            unconfined.Reason.DATABASE_CLIENT,
            [*argv, "--dbname", database],
            {**os.environ, **(environment or {})},
        )
    except FileNotFoundError as error:
        raise BackupError(
            f"{program} isn't installed. Install PostgreSQL's client programs of the server's "
            "version (Debian: postgresql-client) and run this again."
        ) from error
    if ended.code:
        raise BackupError(f"{program} failed: {ended.complaint.strip()}")


def _add_files(archive: tarfile.TarFile, digests: list[str], saved: set[str]) -> set[str]:
    """Add the contents that aren't saved yet, and return those that are gone."""
    missing = set()
    for digest in digests:
        if digest in saved:
            continue
        try:
            with storages["files"].open(StoredFile(digest=digest).path) as content:
                _add_stream(archive, f"{FILES}/{digest}", content)
        except FileNotFoundError:
            missing.add(digest)
        else:
            saved.add(digest)
    return missing


def _add_folder(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    for parent, folders, files in os.walk(folder, followlinks=False):
        for entry in sorted(folders + files):
            path = Path(parent, entry)
            info = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            try:
                status = path.lstat()
                info.mode = stat.S_IMODE(status.st_mode)
                info.mtime = int(status.st_mtime)
                if stat.S_ISLNK(status.st_mode):
                    info.type = tarfile.SYMTYPE
                    info.linkname = os.readlink(path)
                    archive.addfile(info)
                elif stat.S_ISDIR(status.st_mode):
                    info.type = tarfile.DIRTYPE
                    archive.addfile(info)
                elif stat.S_ISREG(status.st_mode):
                    _add_file(archive, info, path)
            except FileNotFoundError:
                continue  # deleted meanwhile


def _add_file(archive: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> None:
    with path.open("rb") as file, tempfile.TemporaryDirectory(prefix="backup-") as folder:
        if file.read(len(SQLITE_HEADER)) == SQLITE_HEADER:
            copy = Path(folder, "copy")
            _copy_sqlite(path, copy)
            with copy.open("rb") as content:
                _add_stream(archive, info.name, content, info)
        else:
            file.seek(0)
            _add_stream(archive, info.name, file, info)


def _add_stream(
    archive: tarfile.TarFile, name: str, content: Any, info: tarfile.TarInfo | None = None
) -> str:
    """Add a file that may grow or shrink meanwhile, and return its digest."""
    info = info or tarfile.TarInfo(name)
    digest = sha256()
    # The size comes first in an archive, so it has to be known.
    with tempfile.TemporaryFile(dir=settings.DATA_DIR) as copy:
        while chunk := content.read(CHUNK_BYTES):
            digest.update(chunk)
            copy.write(chunk)
        info.size = copy.tell()
        copy.seek(0)
        archive.addfile(info, copy)
    return digest.hexdigest()


def restore(source: Path) -> dict[str, Any]:
    """Restore a backup into an empty database, check it, and return its manifest."""
    if connection.introspection.table_names():
        raise BackupError(
            "The database isn't empty. Restore into an empty one: set ASHIATO_DATA to a new "
            "folder, or ASHIATO_DATABASE_URL to a new database."
        )
    connection.close()
    try:
        with tarfile.open(source) as archive:
            manifest = _read_manifest(archive, source)
            _restore_entries(archive, manifest)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BackupError(f"{source} can't be read: {error}") from error
    call_command("migrate", verbosity=0)
    folder_identity.mark()
    storage = storages["files"]
    manifest["missing_files"] = sorted(
        row.digest
        for row in StoredFile.objects.iterator()
        if not storage.exists(row.path) or storage.size(row.path) != row.size
    )
    # Those that can't be decrypted with the keys of this installation.
    unreadable = []
    for model, names in encrypted_fields():
        for row in model._default_manager.iterator():
            for name in names:
                secret = getattr(row, name)
                if secret and not can_read(secret):
                    label = concrete_field(model, name).verbose_name
                    unreadable.append(f"{model._meta.verbose_name} {row}: {label}")
    manifest["unreadable_secrets"] = sorted(unreadable)
    return manifest


def _read_manifest(archive: tarfile.TarFile, source: Path) -> dict[str, Any]:
    names = archive.getnames()
    if not names or names[-1] != MANIFEST:
        raise BackupError(f"{source} isn't a complete backup of Ashiato.")
    try:
        with _entry(archive, archive.getmember(MANIFEST)) as file:
            manifest: dict[str, Any] = json.load(file)
        is_newer = int(manifest["format"]) > FORMAT
        if missing := MANIFEST_FIELDS - manifest.keys():
            raise KeyError(*missing)
    except (ValueError, TypeError, KeyError) as error:
        raise BackupError(f"{source} isn't a complete backup of Ashiato.") from error
    if is_newer:
        raise BackupError(
            f"The backup was made by Ashiato {manifest['version']}. "
            "Restore it with that version or a newer one."
        )
    if manifest["database"] != connection.vendor:
        raise BackupError(
            f"The backup was made on {manifest['database']}, and this is {connection.vendor}. "
            "Check ASHIATO_DATABASE_URL."
        )
    return manifest


def _restore_entries(archive: tarfile.TarFile, manifest: dict[str, Any]) -> None:
    links: dict[Path, str] = {}
    with tempfile.TemporaryDirectory(dir=settings.DATA_DIR, prefix="restore-") as folder:
        database = Path(folder, DATABASE)
        for member in archive:
            kind, _, digest = member.name.partition("/")
            if member.name == DATABASE:
                with _entry(archive, member) as content, database.open("wb") as file:
                    shutil.copyfileobj(content, file, CHUNK_BYTES)
            elif kind == FILES:
                _restore_file(archive, member, digest)
            elif kind in FOLDERS:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise BackupError(
                        f"The backup has an entry outside of the data folder: {member.name}"
                    )
                target = settings.DATA_DIR / path
                if member.issym():
                    links[target] = member.linkname
                elif member.isdir():
                    target.mkdir(mode=0o700, parents=True, exist_ok=True)
                elif member.isreg():
                    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    with _entry(archive, member) as content, target.open("wb") as file:
                        shutil.copyfileobj(content, file, CHUNK_BYTES)
                    target.chmod(member.mode & 0o700)
        # Last, so that nothing is written through one, not even another link.
        if any(parent in links for target in links for parent in target.parents):
            raise BackupError("The backup has an entry behind a link, so it isn't restored.")
        for target, destination in links.items():
            target.unlink(missing_ok=True)
            target.symlink_to(destination)
        _restore_database(database, manifest["database_sha256"])


@contextmanager
def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[BinaryIO]:
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise BackupError(f"The backup's entry {member.name} isn't a file.")
    with content:
        yield content  # type: ignore[misc]  # typed as IO[bytes]


def _restore_file(archive: tarfile.TarFile, member: tarfile.TarInfo, digest: str) -> None:
    with _entry(archive, member) as content:
        chunks = iter(lambda: content.read(CHUNK_BYTES), b"")
        with store.stage(chunks, name=digest, max_bytes=member.size) as staged:
            if staged.digest != digest:
                raise BackupError(f"The file {digest} in the backup is damaged.")
            store.place(staged, StoredFile(digest=digest).path)


def _restore_database(path: Path, expected: str) -> None:
    with path.open("rb") as file:
        digest = sha256()
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest() != expected:
        raise BackupError("The database in the backup is damaged.")
    if connection.vendor == "sqlite":
        target = Path(connection.settings_dict["NAME"])
        for suffix in ("-wal", "-shm"):  # of the empty database
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        path.chmod(0o600)
        path.replace(target)
    else:
        _run_postgresql("pg_restore", "--single-transaction", str(path))
    applied = set(MigrationRecorder(connection).applied_migrations())
    if newer := sorted(applied - set(MigrationLoader(None).disk_migrations)):
        app, name = newer[0]
        raise BackupError(
            f"The backup is from a newer version of Ashiato (migration {app}.{name}). "
            "Install that version, and restore into another empty database."
        )
