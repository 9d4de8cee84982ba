"""The files of a run's chat for Python code, and a check of the images that it draws."""

from collections.abc import Sequence

from agents.db import database
from agents.engine.sentences import Sentence as _
from agents.knowledge.files import FileRefused, images, store, svg
from agents.metering.budgets import current_payer
from agents.models import Run, RunAttachment, StoredFile
from agents.tools.python import SVG, ChatFile, FileRejected

from .file_context import file_refs

MAX_TOOL_FILES = 20
NOT_A_PICTURE = _("not an SVG without scripts, a document type and links to other files")


async def load(run: Run) -> Sequence[ChatFile]:
    """Return the files of the run's messages, then those that tools made in its chat."""
    return await database.run(_load, run)


def _load(run: Run) -> list[ChatFile]:
    refs = [ref for ref in file_refs(run) if ref.get("digest")]
    digests = {ref["digest"] for ref in refs}
    stored = StoredFile.objects.in_bulk(digests, field_name="digest")
    names = [(stored[ref["digest"]], ref["name"]) for ref in refs if ref["digest"] in stored]
    runs = {"run__topic": run.topic} if run.topic else {"run": run}
    rows = RunAttachment.objects.filter(**runs).select_related("file").order_by("-pk")
    names += [
        (row.file, row.name or f"{row.digest[:8]}.{row.extension}")
        for row in rows[:MAX_TOOL_FILES]
    ]
    # The same file can be in several messages, and images of messages are the runs', too.
    unique = {(file.digest, name): file for file, name in reversed(names)}
    return [
        ChatFile(name=name, size=file.size, open=file.open)
        for (_digest, name), file in reversed(unique.items())
    ]


def check_image(name: str, data: bytes, mime_type: str) -> tuple[bytes, str]:
    """Return an image as models and browsers can take it, with its type; raise FileRejected."""
    if mime_type == SVG:
        try:
            svg.check(data)
        except (svg.NotSvg, svg.UnsafeSvg) as error:
            raise FileRejected(NOT_A_PICTURE) from error
        return data, mime_type
    try:
        with (
            store.stage(data, name=name) as staged,
            images.scale(staged, name, owner=current_payer().user) as scaled,
        ):
            return scaled.staged.path.read_bytes(), scaled.staged.mime_type
    except FileRefused as error:
        raise FileRejected(str(error)) from error
