"""The chat's tables as a database that a model can query, behind the database tool's walls."""

import asyncio
import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path

from django.conf import settings

from agents.db import database
from agents.knowledge.files import store
from agents.models import Run, StoredFile
from agents.tools import sandbox
from agents.tools.database.tool import DatabaseTool

from .file_context import FileRef, file_refs

TOOL_NAME = "query_files"
TABLE_LOADER = sandbox.Worker(
    name="table loader",
    program=str(Path(__file__).with_name("table_worker.py")),
    memory_bytes=1_500 * 2**20,
    file_bytes=400_000_000,
)
SECONDS = 90
CPU_SECONDS = 60
MAX_TABLE_FILES = 10
# They can be made again from the files, so they needn't last.
UNUSED_SECONDS = 2 * 86_400
MAX_FOLDER_BYTES = 4_000_000_000
SLOTS = sandbox.FairSlots(2, per_owner=1)

logger = logging.getLogger(__name__)


def folder() -> Path:
    return Path(settings.DATA_DIR) / "tables"


async def build_tool(run: Run) -> DatabaseTool | None:
    """Return a tool that queries the chat's tables with SQL; None if it has none."""
    refs = [ref for ref in file_refs(run) if ref["kind"] == "table"][:MAX_TABLE_FILES]
    if not refs:
        return None
    digests = [ref["digest"] for ref in refs]
    find_files = partial(StoredFile.objects.in_bulk, digests, field_name="digest")
    files = await database.run(find_files)
    path = await asyncio.to_thread(_database, run, refs, files)
    return None if path is None else await asyncio.to_thread(_tool, path)


def _tool(path: Path) -> DatabaseTool:
    tool = DatabaseTool(f"sqlite:///{path}")
    tool.name = TOOL_NAME
    tool.description = f"The tables in the user's attached files. {tool.description}"
    return tool


def _database(
    run: Run, refs: Sequence[FileRef], files: Mapping[str, StoredFile]
) -> Path | None:
    """Return the SQLite file with these tables, made now if it isn't there."""
    key = sha256(json.dumps([[ref["digest"], ref["name"]] for ref in refs]).encode())
    topic_folder = folder() / run.topic.replace("/", "_")
    path = topic_folder / f"{key.hexdigest()[:32]}.sqlite3"
    if path.exists():
        path.touch()
        return path
    topic_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(f".{time.monotonic_ns()}")
    try:
        if not _load(draft, refs, files, run.user_id):
            return None
        draft.replace(path)
        # If all are too large, those go that weren't used for the longest time.
        stored = [(other.stat(), other) for other in folder().glob("*/*") if other != path]
        used_bytes = path.stat().st_size + sum(stat.st_size for stat, _ in stored)
        free_bytes = MAX_FOLDER_BYTES - used_bytes
        for stat, other in sorted(stored, key=lambda entry: entry[0].st_mtime):
            if free_bytes >= 0:
                break
            other.unlink(missing_ok=True)
            free_bytes += stat.st_size
    except OSError as error:
        logger.warning("The tables of a chat couldn't be loaded: %s", error)
        return None
    finally:
        draft.unlink(missing_ok=True)
    return path


def _load(
    target: Path,
    refs: Sequence[FileRef],
    files: Mapping[str, StoredFile],
    owner: int | None,
) -> bool:
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
        if not sources:
            return False
        request = {"target": str(target), "files": sources}
        grant = sandbox.Grant(
            seconds=SECONDS,
            cpu_seconds=CPU_SECONDS,
            readable=[source["path"] for source in sources],
            writable=[str(target.parent)],
        )
        try:
            with SLOTS.slot(owner, SECONDS):
                reply = sandbox.run(TABLE_LOADER, request, grant).json()
        except (TimeoutError, sandbox.WorkerFailed) as error:
            logger.warning("The tables of a chat couldn't be loaded: %r", error)
            return False
    for note in reply.get("notes", ()):
        logger.info("Tables of a chat: %s", note)
    return bool(reply.get("tables"))


def delete_for_topic(topic: str) -> None:
    """Delete the databases of a deleted chat."""
    shutil.rmtree(folder() / topic.replace("/", "_"), ignore_errors=True)


def delete_unused() -> None:
    """Delete databases that no run has used lately."""
    cutoff = time.time() - UNUSED_SECONDS
    for path in folder().glob("*/*"):
        if path.stat().st_mtime < cutoff:
            path.unlink(missing_ok=True)
