"""Responses with files that users or tools provided: nothing in them is ever executed."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import PurePath
from typing import IO, Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from agents.engine.attachments import OTHER_TYPE
from agents.engine.tool import AUDIO_TYPES, IMAGE_TYPES
from agents.models import StoredFile

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
SINGLE_RANGE = re.compile(r"bytes=(\d{0,12})-(\d{0,12})")


def serve(
    request: HttpRequest,
    file: StoredFile,
    *,
    name: str,
    mime_type: str = "",
    is_download: bool = False,
    inline_types: frozenset[str] = frozenset(INLINE_TYPES),
    headers: Mapping[str, str] = REVALIDATED,
) -> HttpResponseBase:
    """Return a file to somebody who was allowed to read it; check that before.

    Only harmless types are displayed, everything else is downloaded.
    """
    kind = mime_type or file.mime_type
    etag = f'"{file.digest}"'
    if request.headers.get("If-None-Match") == etag:
        response: HttpResponseBase = HttpResponse(status=304)
    else:
        is_inline = kind in inline_types and not is_download
        response = stream(request, file.open(), file.size)
        response["Content-Type"] = kind if is_inline else OTHER_TYPE
        response["Content-Disposition"] = disposition(name, file.digest, is_inline)
    return with_headers(response, {**headers, "ETag": etag})


def with_headers(response: HttpResponseBase, headers: Mapping[str, str]) -> HttpResponseBase:
    for key, value in {**SAFE_HEADERS, **headers}.items():
        response[key] = value
    return response


def stream(request: HttpRequest, content: IO[Any], size: int) -> HttpResponseBase:
    """Return the requested part; Safari plays sounds only if it can ask for parts."""
    part = requested_range(request.headers.get("Range", ""), size)
    if part is not None and not part:
        content.close()
        response: HttpResponseBase = HttpResponse(status=416)
        response["Content-Range"] = f"bytes */{size}"
        return response
    whole = part if part is not None else range(size)
    if len(whole) <= MAX_MEMORY_BYTES:
        with content:
            content.seek(whole.start)
            response = HttpResponse(content.read(len(whole)))
    else:
        response = StreamingHttpResponse(_pieces(content, whole))
    response["Content-Length"] = len(whole)
    if part is not None:
        response.status_code = 206
        response["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    return response


async def _pieces(content: IO[Any], part: range) -> AsyncIterator[bytes]:
    """Read in a thread, because a disk or another machine can be slow."""
    with content:
        await asyncio.to_thread(content.seek, part.start)
        left = len(part)
        while left and (piece := await asyncio.to_thread(content.read, min(CHUNK_BYTES, left))):
            left -= len(piece)
            yield piece


def requested_range(header: str, size: int) -> range | None:
    """Return the requested bytes: None for all of them, empty if there are none."""
    found = SINGLE_RANGE.fullmatch(header.strip())
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last or size) + 1))


def disposition(name: str, digest: str, is_inline: bool) -> str:
    plain = f"file-{digest[:12]}{_plain_ending(name)}"
    clean = "".join(c for c in name.replace("/", "_").replace("\\", "_") if c.isprintable())
    way = "inline" if is_inline else "attachment"
    full = quote(clean.strip(". ") or plain, safe="")
    return f"{way}; filename=\"{plain}\"; filename*=UTF-8''{full}"


def _plain_ending(name: str) -> str:
    ending = PurePath(name).suffix
    return ending if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", ending) else ""
