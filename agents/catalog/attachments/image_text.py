"""The text in the user's images, for models that don't see them."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agents.db import database
from agents.engine.planner import ReActPlanner
from agents.knowledge.files import store
from agents.knowledge.parsing import UnreadableDocument, parse
from agents.models import Run, RunAttachment, StoredFile

FileRef = Mapping[str, Any]
MAX_CHARS = 8_000
SECONDS = 30.0

logger = logging.getLogger(__name__)


def known(run: Run) -> dict[str, str]:
    """Return the recognized text of a run's images, by digest."""
    rows = RunAttachment.objects.filter(run=run).exclude(text="")
    return dict(rows.values_list("digest", "text"))


async def recognize(run: Run, images: Sequence[FileRef], planner: ReActPlanner) -> None:
    """Read the text in images that this model can't see, each once."""
    if "image" in planner.senses or not images:
        return
    for file, name in await database.run(_unread, run, images):
        text = await asyncio.to_thread(_read, file, name)
        if text:
            await database.run(_save, run, file, name, text)


def _unread(run: Run, images: Sequence[FileRef]) -> list[tuple[StoredFile, str]]:
    """Return images without text; what another run has recognized is taken from there."""
    files = StoredFile.objects.in_bulk([ref["digest"] for ref in images], field_name="digest")
    unread: list[tuple[StoredFile, str]] = []
    for ref in images:
        file = files.get(ref["digest"])
        if file is None:
            continue
        earlier_text = (
            file.run_attachments.exclude(text="").values_list("text", flat=True).first()
        )
        if earlier_text:
            _save(run, file, ref["name"], earlier_text)
        else:
            unread.append((file, ref["name"]))
    return unread


def _read(file: StoredFile, name: str) -> str:
    try:
        with store.local_path(file) as path:
            parsed = parse(path, name, mime_type=file.mime_type, deadline=SECONDS)
    except (UnreadableDocument, OSError) as error:
        logger.info("No text in image %s: %s", file, error)
        return ""
    text = "\n".join(section.text for section in parsed.parts)
    return text.strip()[:MAX_CHARS]


def _save(run: Run, file: StoredFile, name: str, text: str) -> None:
    columns = {"file": file, "mime_type": file.mime_type, "name": name[:100], "size": file.size}
    RunAttachment.objects.update_or_create(
        {**columns, "text": text}, run=run, digest=file.digest
    )
