"""Uploads files to a collection of a server's library, and waits until they can be searched."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agents.management.escapes import escape_line

from .errors import UNUSABLE, CommandFailed
from .server import Server

POLL_SECONDS = 1.0
WAIT_SECONDS = 600.0
UNREAD_STATUSES = {"queued", "reading", "indexing"}


async def ingest(server: Server, paths: Sequence[Path], collection: str) -> None:
    files = list(_files(paths))
    target = await _find_collection(server, collection)
    problems = 0
    for file, content in files:
        document = await server.upload(target["id"], file.name, content)
        document = await _wait_until_read(server, document)
        problem = document.get("problem")
        problems += document["status"] != "ready"
        line = f"{document['status']:<9}  {file}  {problem or document['title']}"
        sys.stdout.write(escape_line(line) + "\n")
        sys.stdout.flush()
    if problems:
        raise CommandFailed(f"{problems} of {len(files)} couldn't be read.")


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of these paths and folders, in order, without hidden ones."""
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in found:
            if path.is_dir() and (not file.is_file() or _is_hidden(file.relative_to(path))):
                continue
            try:
                yield file, file.read_bytes()
            except OSError as error:
                raise CommandFailed(f"Can't read {file}: {error.strerror}.") from error


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


async def _find_collection(server: Server, name: str) -> dict[str, Any]:
    collections = await server.collections()
    if not name and len(collections) == 1:
        return collections[0]
    for collection in collections:
        if collection["name"] == name:
            return collection
    names = ", ".join(sorted(each["name"] for each in collections)) or "none"
    reason = f"There is no collection {name!r} that you can edit." if name else ""
    raise CommandFailed(f"{reason} Choose one with --collection: {names}.".strip(), UNUSABLE)


async def _wait_until_read(server: Server, document: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + WAIT_SECONDS
    while document["status"] in UNREAD_STATUSES and time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        document = await server.document(document["id"])
    return document
