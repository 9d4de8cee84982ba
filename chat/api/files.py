"""Files that programs send in their messages: stored as those of chats, for one run."""

import asyncio
import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents import file_types
from agents.db.installation import configured
from agents.engine.errors import AgentError
from agents.engine.tool import IMAGE_TYPES
from agents.knowledge import ingestion
from agents.knowledge.files import FileRefused, images, store
from agents.knowledge.files.images import ScaledImage
from agents.knowledge.files.store import StagedFile
from agents.knowledge.ingestion import web_pages
from agents.models import Agent, Collection, Run, RunAttachment
from agents.web.api_errors import ApiError
from chat.attachments import uploads
from chat.models import Attachment

DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.ASCII)
MAX_ADDRESS_CHARS = 2_000
MAX_RETURNED = 20
MAX_RETURNED_BYTES = 1_000_000
ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
    "text/plain": "txt",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
}


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as a program sent it."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class _ReceivedFile:
    name: str
    mime_type: str
    kind: str
    staged: StagedFile
    scaled: ScaledImage | None


def returned_files(run: Run) -> Iterator[tuple[RunAttachment, bytes]]:
    """Yield the files that a run's tools returned, with content; large ones are left out."""
    sent = {ref.get("digest") for ref in run.files}
    rows = run.attachments.filter(size__lte=MAX_RETURNED_BYTES).exclude(digest__in=sent)
    for row in rows.select_related("file").order_by("pk")[:MAX_RETURNED]:
        with row.open() as content:
            yield row, content.read()


def decode(text: str, name: str = "") -> SentFile:
    """Return the file in a data: URL or in Base64. Raises ApiError if it is neither."""
    head = DATA_URL.match(text)
    try:
        data = base64.b64decode(text[head.end() :] if head else text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refused(_("A file isn’t valid Base64.")) from error
    mime_type = (head["type"] if head else "") or ""
    ending = ENDINGS.get(mime_type, mime_type.rpartition("/")[2] or "bin")
    return SentFile(name or f"file.{ending}", data)


def check_count(count: int) -> None:
    """Raise ApiError if a request has so many files: ask before any of them is fetched."""
    max_files = configured.MESSAGE_FILES.value
    if count > max_files:
        sentence = _("A message can have at most %(most)d files.")
        raise _refused(sentence % {"most": max_files})


async def fetch(url: str, name: str = "") -> SentFile:
    """Return the file at an address: of data, or of the public web."""
    if url.startswith("data:"):
        return decode(url, name)
    if not url.startswith("https://") or len(url) > MAX_ADDRESS_CHARS:
        raise _refused(_("The address of a file must begin with data: or https://."))
    max_bytes = configured.ATTACHMENT_MB.value * 1_000_000
    try:
        response = await asyncio.to_thread(web_pages.get, url, None, max_bytes)
    except AgentError as reason:
        raise _refused(str(reason)) from reason
    if response.status != 200:
        sentence = _("A file’s address returned status %(status)s.")
        raise _refused(sentence % {"status": response.status})
    last = url.partition("?")[0].rstrip("/").rpartition("/")[2]
    return SentFile(name or last or "file", response.content)


@contextmanager
def received(user: User, files: Sequence[SentFile]) -> Iterator[list[_ReceivedFile]]:
    """Check these files and scale images; nothing remains of them unless they are saved."""
    check_count(len(files))
    max_bytes = configured.ATTACHMENT_MB.value * 1_000_000
    with ExitStack() as stack:
        try:
            yield [_receive(stack, user, file, max_bytes) for file in files]
        except FileRefused as reason:
            raise _refused(str(reason)) from reason


def _receive(stack: ExitStack, user: User, file: SentFile, max_bytes: int) -> _ReceivedFile:
    name = uploads.clean_name(file.name)
    staged = stack.enter_context(store.stage(file.data, name=name, max_bytes=max_bytes))
    mime_type = file_types.refine(staged.mime_type, name)
    kind = uploads.kind_of(mime_type, name)
    scaled = None
    if kind == Attachment.Kind.IMAGE:
        scaled = stack.enter_context(images.scale(staged, name, owner=user.pk))
    return _ReceivedFile(name, mime_type, kind, staged, scaled)


def save(
    user: User, agent: Agent, topic: str, files: Sequence[_ReceivedFile]
) -> list[dict[str, Any]]:
    """Save these files for the run on this topic; return references for it.

    Documents are read in the background, into a collection of the run's own. Call it in the
    transaction that creates the run.
    """
    refs: list[dict[str, Any]] = []
    for number, file in enumerate(files, 1):
        document = None
        if file.scaled is not None:
            stored = store.commit(file.scaled.staged, owner=user)
            mime_type = file.scaled.staged.mime_type
        else:
            stored = store.commit(file.staged, owner=user)
            mime_type = file.mime_type
            collection, _is_new = Collection.objects.get_or_create(
                {"name": _("Files of a program"), "owner": user}, topic=topic
            )
            is_private = agent.personal_data == Agent.PersonalData.HIDDEN
            document = ingestion.add_file(
                collection, user, f"{number}/{file.name}", stored, is_private=is_private
            ).pk
        size = {"width": file.scaled.width, "height": file.scaled.height} if file.scaled else {}
        refs.append(
            {
                "kind": Attachment.Kind.IMAGE if mime_type in IMAGE_TYPES else file.kind,
                "name": file.name,
                "mime_type": mime_type,
                "size": stored.size,
                "digest": stored.digest,
                "document": document,
                **size,
            }
        )
    return refs


def _refused(sentence: str) -> ApiError:
    return ApiError(400, sentence, "invalid_file")
