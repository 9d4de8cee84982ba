"""Images, sounds and files in tool results.

Events and messages only have references; the bytes are in the run's store. The type is read
from the bytes, because servers often declare a wrong one, and only types that models and
browsers display safely count as images or audio.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Literal, NotRequired, Protocol, TypedDict

from agents.file_types import OTHER, detect_type

from .errors import AgentError
from .sentences import Sentence as _
from .tool import AUDIO_TYPES, IMAGE_TYPES, Attachment, ToolResult

MAX_ATTACHMENT_BYTES = 5_000_000
MAX_RESULT_BYTES = 10_000_000
MAX_RESULT_ATTACHMENTS = 20
MAX_RUN_BYTES = 50_000_000
# More than this aren't even listed: a server can send a hundred thousand in one result.
MAX_LISTED_ATTACHMENTS = 100
MAX_JPEG_SEGMENTS = 500
MAX_NAME_CHARS = 100
# Models scale images down; the largest costs about this much, and every one a little.
MAX_IMAGE_TOKENS = 1_600
MIN_IMAGE_TOKENS = 85
PIXELS_PER_TOKEN = 750
AUDIO_BYTES_PER_TOKEN = {"audio/wav": 5_000}
COMPRESSED_BYTES_PER_TOKEN = 500

_MIME_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,60}")


class AttachmentRef(TypedDict):
    """An attachment in an event or a message; its bytes are found by their digest.

    One that couldn't be saved has no digest but a `problem`, and is only in events.
    """

    digest: str
    mime_type: str
    name: str
    size: int
    kind: Literal["image", "audio", "file"]
    width: NotRequired[int]
    height: NotRequired[int]
    problem: NotRequired[str]


class AttachmentRefused(AgentError):
    message = _("The attachment couldn't be saved.")


class AttachmentStore(Protocol):
    """Where a run's attachments are saved."""

    async def save(self, attachment: Attachment) -> AttachmentRef:
        """Save the attachment once; raise AttachmentRefused."""
        ...

    async def load(self, digest: str) -> bytes | None: ...


class MemoryAttachmentStore:
    """Keeps attachments as long as the run's process."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    async def save(self, attachment: Attachment) -> AttachmentRef:
        ref = reference(attachment)
        if ref["digest"] not in self._data:
            check_run_size(sum(map(len, self._data.values())), ref["size"])
            self._data[ref["digest"]] = attachment.data
        return ref

    async def load(self, digest: str) -> bytes | None:
        return self._data.get(digest)


def check_run_size(saved: int, size: int) -> None:
    """Raise AttachmentRefused if a run with so many bytes saved can't have this many more."""
    if saved + size > MAX_RUN_BYTES:
        raise AttachmentRefused(
            _("not saved: the limit per run is %(limit)s", limit=format_size(MAX_RUN_BYTES))
        )


def reference(attachment: Attachment) -> AttachmentRef:
    ref = AttachmentRef(
        digest=sha256(attachment.data).hexdigest(),
        mime_type=attachment.mime_type,
        name=attachment.name,
        size=len(attachment.data),
        kind=attachment.kind,
    )
    if attachment.kind == "image" and (size := image_size(attachment.data)):
        ref["width"], ref["height"] = size
    return ref


def verify(attachment: Attachment) -> Attachment:
    """Return the attachment with its real type and a name that can be displayed."""
    name = "".join(c if c.isprintable() else " " for c in attachment.name)
    name = " ".join(name.replace("[", "(").replace("]", ")").split())[:MAX_NAME_CHARS]
    mime_type = detect_type(attachment.data)
    if not mime_type:
        declared = attachment.mime_type.partition(";")[0].strip().lower()
        is_media = declared in IMAGE_TYPES or declared in AUDIO_TYPES
        is_usable = _MIME_TYPE.fullmatch(declared) and not is_media
        mime_type = declared if is_usable else OTHER
    return replace(attachment, mime_type=mime_type, name=name)


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return an image's width and height, if they are where the format has them."""
    match detect_type(data):
        case "image/png" if len(data) >= 24:
            size = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
        case "image/gif" if len(data) >= 10:
            size = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        case "image/webp":
            size = _webp_size(data)
        case "image/jpeg":
            size = _jpeg_size(data)
        case _:
            return None
    return size if all(0 < side < 100_000 for side in size) else None


def _webp_size(data: bytes) -> tuple[int, int]:
    if len(data) < 30:
        return 0, 0
    match data[12:16]:
        case b"VP8X":
            width = int.from_bytes(data[24:27], "little")
            height = int.from_bytes(data[27:30], "little")
            return width + 1, height + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width = int.from_bytes(data[26:28], "little")
    height = int.from_bytes(data[28:30], "little")
    return width & 0x3FFF, height & 0x3FFF


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Walk the segments to the frame header."""
    start = 2
    for _segment in range(MAX_JPEG_SEGMENTS):
        if start + 9 > len(data) or data[start] != 0xFF:
            break
        marker = data[start + 1]
        if marker in range(0xC0, 0xD0) and marker not in {0xC4, 0xC8, 0xCC}:
            height = int.from_bytes(data[start + 5 : start + 7])
            width = int.from_bytes(data[start + 7 : start + 9])
            return width, height
        start += 2 + max(2, int.from_bytes(data[start + 2 : start + 4]))
    return 0, 0


def format_size(size: int) -> str:
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:.0f} KB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"


def placeholder(attachment: AttachmentRef | Attachment) -> str:
    """Return the attachment in a few words, as it is in the result's text."""
    ref = reference(attachment) if isinstance(attachment, Attachment) else attachment
    name = f"{ref['name']}, " if ref["name"] else ""
    return f"[{ref['kind']}: {name}{ref['mime_type']}, {format_size(ref['size'])}]"


def explain(text: str, mark: str, reason: str) -> str:
    """Complete an attachment's placeholder in the text with a reason."""
    sentence = f"{mark[:-1]}; {reason}]"
    if mark in text:
        return text.replace(mark, sentence, 1)
    return f"{text}\n{sentence}" if text else sentence


async def save_all(
    result: ToolResult, store: AttachmentStore
) -> tuple[ToolResult, tuple[AttachmentRef, ...]]:
    """Save a result's attachments; the text says which couldn't be, and why."""
    text = (result.error if result.is_error else result.output) or ""
    refs = list[AttachmentRef]()
    counts = dict[str, int]()
    saved_bytes = 0
    for attachment in map(verify, result.attachments[:MAX_LISTED_ATTACHMENTS]):
        mark = placeholder(attachment)
        counts[mark] = counts.get(mark, 0) + 1
        # Data stays data: plan steps read it.
        if text.count(mark) < counts[mark] and not result.is_data:
            text = f"{text}\n{mark}" if text else mark
        try:
            if len(attachment.data) > MAX_ATTACHMENT_BYTES:
                raise AttachmentRefused(too_large())
            if saved_bytes + len(attachment.data) > MAX_RESULT_BYTES:
                limit = format_size(MAX_RESULT_BYTES)
                raise AttachmentRefused(
                    _("not saved: the limit per result is %(limit)s", limit=limit)
                )
            if sum(bool(ref["digest"]) for ref in refs) >= MAX_RESULT_ATTACHMENTS:
                raise AttachmentRefused(_too_many())
            refs.append(await store.save(attachment))
            saved_bytes += len(attachment.data)
        except AttachmentRefused as error:
            counts[mark] -= 1
            text = text if result.is_data else explain(text, mark, str(error))
            refs.append({**reference(attachment), "digest": "", "problem": str(error)})
    unlisted = len(result.attachments) - MAX_LISTED_ATTACHMENTS
    if unlisted > 0 and not result.is_data:
        text = f"{text}\n[{unlisted:,} more attachments; {_too_many()}]"
    if result.is_error:
        return replace(result, error=text), tuple(refs)
    return replace(result, output=text), tuple(refs)


def _too_many() -> str:
    limit = str(MAX_RESULT_ATTACHMENTS)
    return _("not saved: the limit per result is %(limit)s attachments", limit=limit)


def too_large() -> str:
    return _("too large to save (limit %(limit)s)", limit=format_size(MAX_ATTACHMENT_BYTES))


def token_count(refs: Sequence[AttachmentRef]) -> int:
    """Estimate the tokens, about which the size in base64 says nothing."""
    total = 0
    for ref in refs:
        if ref["kind"] == "audio":
            per_token = AUDIO_BYTES_PER_TOKEN.get(ref["mime_type"], COMPRESSED_BYTES_PER_TOKEN)
            total += ref["size"] // per_token + 1
        else:
            pixels = ref.get("width", 0) * ref.get("height", 0)
            tokens = pixels // PIXELS_PER_TOKEN if pixels else MAX_IMAGE_TOKENS
            total += min(MAX_IMAGE_TOKENS, max(MIN_IMAGE_TOKENS, tokens))
    return total


def refs_of(message: Mapping[str, object]) -> list[AttachmentRef]:
    """Return the saved attachments of a message or an event."""
    refs = message.get("attachments")
    return [ref for ref in refs if ref.get("digest")] if isinstance(refs, list) else []
