"""Rows of databases as tools, and what a database says when it is checked."""

import sqlite3
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.db import database
from agents.db.installation import configured
from agents.models import DatabaseConnection
from agents.models.catalog.databases import SAMPLE_NAME, SAMPLE_TOOL
from agents.models.catalog.tools import ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.tools.database.dialects import DatabaseKind
from agents.tools.database.query_tool import QueryTool
from agents.tools.database.schema import Schema
from agents.tools.database.server_tool import (
    ConnectionFailed,
    ServerAddress,
    ServerDatabaseTool,
    inspect,
)
from agents.tools.database.tool import DatabaseTool, read_schema, sqlite_uri

Kind = DatabaseConnection.Kind
State = DatabaseConnection.State
# How long a saved schema is used without asking the server.
SCHEMA_AGE = timedelta(hours=1)
SUFFIXES = (".sqlite3", ".sqlite", ".db", ".db3")
MAX_FILES = 500


class InvalidFile(ValueError):
    """Raised when a file isn't in the folder for databases, with a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a database said: its tables, or an error."""

    schema: Schema | None = None
    version: str = ""
    powers: tuple[str, ...] = ()
    error: str = ""
    milliseconds: float = 0.0


def build_tool(row: DatabaseConnection) -> QueryTool:
    """Build a database's tool; raise ValueError or UnreadableSecret for a wrong row."""
    limits: dict[str, Any] = {
        "max_rows": row.max_rows or configured.DATABASE_ROWS.value,
        "timeout": row.timeout or configured.DATABASE_SECONDS.value,
        "introduction": row.description,
    }
    if row.kind == Kind.SQLITE:
        tool: QueryTool = DatabaseTool(f"sqlite:///{file_path(row)}", row.tables, **limits)
    else:
        # An old schema is read again before the next query.
        is_fresh = (
            row.schema is not None
            and row.checked_at is not None
            and timezone.now() - row.checked_at < SCHEMA_AGE
        )
        tool = ServerDatabaseTool(
            server_address(row),
            saved_schema(row),
            row.tables,
            load_schema=partial(_load_schema, row) if row.pk and not is_fresh else None,
            **limits,
        )
    tool.name = row.tool_name
    return tool


def server_address(row: DatabaseConnection) -> ServerAddress:
    return ServerAddress(
        kind=DatabaseKind(row.kind),
        host=row.host,
        port=row.port,
        database=row.database,
        user=row.username,
        password=row.password.reveal(),
        tls=row.tls,
        ca=row.ca_certificate,
    )


def saved_schema(row: DatabaseConnection) -> Schema:
    """Return the tables as they were at the last check."""
    if row.kind == Kind.SQLITE:
        return read_schema(sqlite_uri(f"sqlite:///{file_path(row)}"))
    if row.schema:
        return Schema.from_dict(row.schema)
    return Schema(kind=DatabaseKind(row.kind), tables=(), database=row.database)


async def _load_schema(row: DatabaseConnection) -> Schema:
    result = await check_server(row)
    await database.run(save_check, row.pk, result)
    if result.schema is None:
        raise ConnectionFailed(result.error)
    return result.schema


def check(row: DatabaseConnection) -> Check:
    """Connect with a row's values, saved or not."""
    if row.kind != Kind.SQLITE:
        return async_to_sync(check_server)(row)
    began = time.perf_counter()
    try:
        schema = saved_schema(row)
    except InvalidFile as error:
        return Check(error=str(error))
    except sqlite3.Error as error:
        return Check(error=f"The database can't be read: {error}.")
    return Check(
        schema=schema, version=f"SQLite {sqlite3.sqlite_version}", milliseconds=_since(began)
    )


async def check_server(row: DatabaseConnection) -> Check:
    began = time.perf_counter()
    try:
        report = await inspect(server_address(row))
    except (ConnectionFailed, UnreadableSecret) as error:
        return Check(error=str(error), milliseconds=_since(began))
    return Check(
        schema=report.schema,
        version=report.version,
        powers=report.powers,
        milliseconds=_since(began),
    )


def save_check(pk: int, result: Check) -> None:
    """Save what a check found; a failed one leaves the tables as they were."""
    values: dict[str, Any] = {
        "checked_at": timezone.now(),
        "state": State.FAILED if result.error else State.READY,
        "last_error": result.error,
        "latency_ms": result.milliseconds,
    }
    if result.schema is not None:
        values |= {"version": result.version, "powers": list(result.powers)}
        values["schema"] = result.schema.as_dict()
    DatabaseConnection.objects.filter(pk=pk).update(**values)


def file_path(row: DatabaseConnection) -> Path:
    """Return the path of an SQLite file; raise InvalidFile if it is outside of its folder."""
    if row.is_sample:
        return Path(settings.SAMPLE_DATABASE)
    folder = Path(settings.DATABASE_FILES).resolve()
    path = (folder / row.file).resolve()
    if not row.file or not path.is_relative_to(folder) or path == folder:
        raise InvalidFile(
            _("%(file)s isn't in the folder for databases.") % {"file": row.file or "—"}
        )
    return path


def files() -> list[str]:
    """Return the SQLite files that can be connected."""
    folder = Path(settings.DATABASE_FILES)
    paths = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return sorted(str(path.relative_to(folder)) for path in islice(paths, MAX_FILES))


def add_sample() -> None:
    """Connect the sample shop to the tool that comes with the installation."""
    sample_tools = ToolRegistration.objects.filter(
        name=SAMPLE_TOOL, connection=None, source="own"
    )
    if not sample_tools.exists() or DatabaseConnection.objects.filter(is_sample=True).exists():
        return
    is_taken = DatabaseConnection.objects.filter(name=SAMPLE_NAME).exists()
    row = DatabaseConnection(
        name=f"{SAMPLE_NAME}-shop" if is_taken else SAMPLE_NAME,
        kind=Kind.SQLITE,
        is_sample=True,
    )
    row.save()
    sample_tools.update(connection=row)


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
