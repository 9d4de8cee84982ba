"""Responses with files that users or tools provided: nothing in them is ever executed."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import IO, Any
from urllib.parse import quote

from django.core.files.storage import storages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from agents import file_types
from agents.engine.tool import AUDIO_TYPES, IMAGE_TYPES
from agents.models import StoredFile
from agents.models.runs.attachments import EXTENSIONS

from .errors import StorageUnavailable
from .store import thumbnail_path

CHUNK_BYTES = 256 * 1024
# More than this is streamed.
MAX_MEMORY_BYTES = 1_000_000
# What browsers display without interpreting it as a page. PDF is only for a page's own viewer.
INLINE_TYPES = (
    IMAGE_TYPES
    | AUDIO_TYPES
    | {"audio/mp4", "audio/webm", "video/mp4", "video/webm", "video/quicktime"}
)
SAFE_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
}
# Rights are checked again for every request; 304 then saves the bytes.
REVALIDATED = {"Cache-Control": "private, no-cache"}
PLAIN_ENDINGS = {
    ".csv",
    ".docx",
    ".eml",
    ".epub",
    ".json",
    ".m4a",
    ".md",
    ".mov",
    ".mp4",
    ".pdf",
    ".pptx",
    ".tsv",
    ".txt",
    ".webm",
    ".xlsx",
    ".zip",
}
UNCACHED = {"Cache-Control": "no-store, private"}
SINGLE_RANGE = re.compile(r"bytes=(\d{0,12})-(\d{0,12})")


def serve(
    request: HttpRequest,
    file: StoredFile,
    *,
    name: str,
    mime_type: str = "",
    is_download: bool = False,
    inline_types: frozenset[str] = frozenset(INLINE_TYPES),
    headers: Mapping[str, str] | None = None,
) -> HttpResponseBase:
    """Return a file as a response; the caller has checked that the user can read it.

    Only harmless types are displayed, everything else is downloaded.
    """
    kind = mime_type or file.mime_type
    is_inline = kind in inline_types and not is_download
    content = Content(file.open, file.size, file.digest, kind, name, is_inline)
    if headers is None:
        headers = REVALIDATED if is_inline else UNCACHED
    return respond(request, content, headers)


def serve_thumbnail(
    request: HttpRequest, file: StoredFile, *, headers: Mapping[str, str] = REVALIDATED
) -> HttpResponseBase:
    """Return the thumbnail of an image that has one."""
    storage = storages["files"]
    path = thumbnail_path(file)
    try:
        size = storage.size(path)
    except StorageUnavailable:
        return _unavailable()
    content = Content(
        partial(storage.open, path, "rb"),
        size,
        f"{file.digest}-thumbnail",
        "image/webp",
        "thumbnail.webp",
        is_inline=True,
    )
    return respond(request, content, headers)


@dataclass(frozen=True)
class Content:
    """Bytes to send: how to open them, and as what."""

    open: Callable[[], IO[Any]]
    size: int
    digest: str
    mime_type: str
    name: str
    is_inline: bool


def respond(
    request: HttpRequest, content: Content, headers: Mapping[str, str]
) -> HttpResponseBase:
    """Return the content, a part of it, or that the browser has it already."""
    etag = f'"{content.digest}"'
    if request.headers.get("If-None-Match") == etag:
        return with_headers(HttpResponse(status=304), {**headers, "ETag": etag})
    try:
        opened = content.open()
    except StorageUnavailable:
        return _unavailable()
    except OSError:
        raise Http404("The file isn't there.") from None
    try:
        response = _stream(request, opened, content.size)
    except StorageUnavailable:
        return _unavailable()
    response["Content-Type"] = content.mime_type if content.is_inline else file_types.OTHER
    response["Content-Disposition"] = _disposition(content)
    return with_headers(response, {**headers, "ETag": etag})


def _unavailable() -> HttpResponseBase:
    sentence = _("The file storage isn't responding. Try again later.")
    response = HttpResponse(sentence, content_type="text/plain; charset=utf-8", status=503)
    return with_headers(response, {**UNCACHED, "Retry-After": "30"})


def with_headers(response: HttpResponseBase, headers: Mapping[str, str]) -> HttpResponseBase:
    for key, value in {**SAFE_HEADERS, **headers}.items():
        response[key] = value
    return response


def _stream(request: HttpRequest, content: IO[Any], size: int) -> HttpResponseBase:
    """Return the requested part; Safari plays sounds only if it can ask for parts."""
    requested = _requested_range(request.headers.get("Range", ""), size)
    if requested is not None and not requested:
        content.close()
        response: HttpResponseBase = HttpResponse(status=416)
        response["Content-Range"] = f"bytes */{size}"
        return response
    byte_range = requested if requested is not None else range(size)
    if len(byte_range) <= MAX_MEMORY_BYTES:
        with content:
            content.seek(byte_range.start)
            response = HttpResponse(content.read(len(byte_range)))
    else:
        response = StreamingHttpResponse(_pieces(content, byte_range))
    response["Content-Length"] = len(byte_range)
    if requested is not None:
        response.status_code = 206
        response["Content-Range"] = f"bytes {requested.start}-{requested.stop - 1}/{size}"
    return response


async def _pieces(content: IO[Any], byte_range: range) -> AsyncIterator[bytes]:
    """Read in a thread, because a disk or another machine can be slow."""
    with content:
        await asyncio.to_thread(content.seek, byte_range.start)
        remaining = len(byte_range)
        while remaining and (
            piece := await asyncio.to_thread(content.read, min(CHUNK_BYTES, remaining))
        ):
            remaining -= len(piece)
            yield piece


def _requested_range(header: str, size: int) -> range | None:
    """Return the requested bytes: None for all of them, empty if there are none."""
    match = SINGLE_RANGE.fullmatch(header.strip())
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last or size) + 1))


def _disposition(content: Content) -> str:
    # An ending that fits the type: a page's name can't make a file a program.
    ending = PurePath(content.name).suffix.lower()
    if content.is_inline and content.mime_type in EXTENSIONS:
        ending = f".{EXTENSIONS[content.mime_type]}"
    elif ending not in PLAIN_ENDINGS:
        ending = ".bin"
    fallback_name = f"attachment-{content.digest[:12]}{ending}"
    name = "".join(c for c in re.sub(r"[/\\\\]", "_", content.name) if c.isprintable())
    disposition = "inline" if content.is_inline else "attachment"
    encoded_name = quote(name.strip(". ") or fallback_name, safe="")
    return f"{disposition}; filename=\"{fallback_name}\"; filename*=UTF-8''{encoded_name}"
