"""The chat's tables as a database that a model can query, behind the database tool's walls."""

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings

from agents.db import database
from agents.files import store
from agents.models import Run, StoredFile
from agents.tools.database.tool import DatabaseTool
from agents.tools.mcp import confine

from .file_context import FileRef, file_refs

TOOL_NAME = "query_files"
WORKER = Path(__file__).with_name("table_worker.py")
SECONDS = 90
MAX_TABLE_FILES = 10
# They can be made again from the files, so they needn't last.
UNUSED_SECONDS = 2 * 86_400
MAX_FOLDER_BYTES = 4_000_000_000
SYSTEM_PATHS = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/urandom")

logger = logging.getLogger(__name__)
_children = BoundedSemaphore(1)


def folder() -> Path:
    return Path(settings.DATA_DIR) / "tables"


async def build_tool(run: Run) -> DatabaseTool | None:
    """Return a tool that queries the chat's tables with SQL; None if it has none."""
    refs = [ref for ref in file_refs(run) if ref["kind"] == "table"][:MAX_TABLE_FILES]
    if not refs:
        return None
    files = await database.run(_stored_files, refs)
    path = await asyncio.to_thread(_database, run.topic, refs, files)
    return None if path is None else await asyncio.to_thread(_tool, path)


def _tool(path: Path) -> DatabaseTool:
    tool = DatabaseTool(f"sqlite:///{path}")
    tool.name = TOOL_NAME
    tool.description = f"The tables in the user's attached files. {tool.description}"
    return tool


def _stored_files(refs: Sequence[FileRef]) -> dict[str, StoredFile]:
    return StoredFile.objects.in_bulk([ref["digest"] for ref in refs], field_name="digest")


def _database(
    topic: str, refs: Sequence[FileRef], files: Mapping[str, StoredFile]
) -> Path | None:
    """Return the SQLite file with these tables, made now if it isn't there."""
    key = sha256(json.dumps([[ref["digest"], ref["name"]] for ref in refs]).encode())
    place = folder() / topic.replace("/", "_")
    path = place / f"{key.hexdigest()[:32]}.sqlite3"
    if path.exists():
        path.touch()
        return path
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(f".{time.monotonic_ns()}")
    try:
        if not _load(draft, refs, files):
            return None
        draft.replace(path)
        _make_room(path)
    except OSError as error:
        logger.warning("The tables of a chat couldn't be loaded: %s", error)
        return None
    finally:
        draft.unlink(missing_ok=True)
    return path


def _load(target: Path, refs: Sequence[FileRef], files: Mapping[str, StoredFile]) -> bool:
    with ExitStack() as stack:
        sources = [
            {
                "path": str(stack.enter_context(store.local_path(files[ref["digest"]]))),
                "name": ref["name"],
                "type": ref["mime_type"],
            }
            for ref in refs
            if ref["digest"] in files
        ]
        reply = _run({"target": str(target), "files": sources}) if sources else {}
    for note in reply.get("notes", ()):
        logger.info("Tables of a chat: %s", note)
    return bool(reply.get("tables"))


def _run(request: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(request).encode()
    if not _children.acquire(timeout=SECONDS):
        logger.warning("The tables of a chat couldn't be loaded: others take too long.")
        return {}
    try:
        done = subprocess.run(
            _command(request), input=text, env={}, capture_output=True, timeout=SECONDS
        )
        reply: dict[str, Any] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        logger.warning("The tables of a chat couldn't be loaded: %s", type(error).__name__)
        return {}
    finally:
        _children.release()
    return reply


def _command(request: dict[str, Any]) -> list[str]:
    """Return the worker's command: it can only read its files and write to its folder."""
    python = [sys.executable, "-I", str(WORKER)]
    if confine.landlock_abi() <= 0:
        return python
    code = [sys.prefix, sys.base_prefix, str(WORKER), *SYSTEM_PATHS]
    wanted = [*code, *(file["path"] for file in request["files"])]
    policy = {
        "read": [name for each in wanted for name in (each, os.path.realpath(each))],
        "write": [*DEVICES, str(Path(request["target"]).parent)],
    }
    return [sys.executable, "-I", "-S", confine.__file__, json.dumps(policy), *python]


def _make_room(newest: Path) -> None:
    """Delete the databases that weren't used for the longest time, if all are too large."""
    found = [(path.stat(), path) for path in folder().glob("*/*") if path != newest]
    room = MAX_FOLDER_BYTES - newest.stat().st_size - sum(stat.st_size for stat, _ in found)
    for stat, path in sorted(found, key=lambda one: one[0].st_mtime):
        if room >= 0:
            break
        path.unlink(missing_ok=True)
        room += stat.st_size


def delete_for_topic(topic: str) -> None:
    """Delete the databases of a deleted chat."""
    shutil.rmtree(folder() / topic.replace("/", "_"), ignore_errors=True)


def delete_unused() -> None:
    """Delete databases that no run has used lately."""
    before = time.time() - UNUSED_SECONDS
    for path in folder().glob("*/*"):
        if path.stat().st_mtime < before:
            path.unlink(missing_ok=True)
