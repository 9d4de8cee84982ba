"""Files that tools returned: displayed if they are images or sounds, downloaded otherwise."""

import re
from urllib.parse import quote

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.access import audit, masking
from agents.access.requests import UserRequest
from agents.engine.attachments import OTHER_TYPE
from agents.engine.tool import AUDIO_TYPES, IMAGE_TYPES
from agents.models import Run, RunAttachment
from agents.review import sharing
from agents.review.audited_reading import open_run
from agents.review.models import ShareLink

from .sharing import PRIVATE_HEADERS

# A tool's file is never trusted: it can run nothing, load nothing and be framed by nothing.
SAFE_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
}
# The address has the content's digest, so what it returns never changes.
CACHED_HEADERS = {"Cache-Control": "private, max-age=31536000, immutable"}
UNCACHED_HEADERS = {"Cache-Control": "no-store, private"}
SINGLE_RANGE = re.compile(r"bytes=(\d{0,12})-(\d{0,12})")


@require_safe
def attachment(request: UserRequest, pk: int, digest: str) -> HttpResponse:
    """Return a file of a run; one that may contain personal data can't be masked."""
    found = open_run(request, pk)
    if found.is_masked:
        raise PermissionDenied(_("Unmask this run to see its files."))
    # A reviewer's access can end any time, so their browser keeps no copy.
    is_participant = masking.is_participant(found.row, request.user)
    headers = CACHED_HEADERS if is_participant else UNCACHED_HEADERS
    return _respond(request, found.row, digest, headers)


@login_not_required
@require_safe
def shared_attachment(request: HttpRequest, token: str, digest: str) -> HttpResponse:
    """Return a file of a shared run, if the link shows everything."""
    link = sharing.find_link(token)
    if link is None or link.level != ShareLink.Level.AUDITOR:
        raise Http404
    audit.record_hourly(
        request.user, audit.SHARE_OPENED, link.run, link=link.pk, level=link.level
    )
    return _respond(request, link.run, digest, PRIVATE_HEADERS)


def _respond(
    request: HttpRequest, run: Run, digest: str, headers: dict[str, str]
) -> HttpResponse:
    rows = RunAttachment.objects.filter(run=run, digest=digest)
    etag = f'"{digest}"'
    if request.headers.get("If-None-Match") == etag and rows.exists():
        response = HttpResponse(status=304)
    else:
        response = _content(request, get_object_or_404(rows))
    for name, value in (SAFE_HEADERS | headers | {"ETag": etag}).items():
        response[name] = value
    return response


def _content(request: HttpRequest, row: RunAttachment) -> HttpResponse:
    is_inline = row.mime_type in IMAGE_TYPES | AUDIO_TYPES
    data, size = bytes(row.data), len(row.data)
    part = _requested_range(request.headers.get("Range", ""), size)
    response = HttpResponse(content_type=row.mime_type if is_inline else OTHER_TYPE)
    response["Content-Disposition"] = _disposition(row, is_inline)
    if part is None:
        response.content = data
    elif part:
        # Safari plays a sound only if it can ask for parts of it.
        response.status_code = 206
        response.content = data[part.start : part.stop]
        response["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    else:
        response.status_code = 416
        response["Content-Range"] = f"bytes */{size}"
    return response


def _requested_range(header: str, size: int) -> range | None:
    """Return the requested bytes: None for all of them, empty if there are none."""
    found = SINGLE_RANGE.fullmatch(header.strip())
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last or size) + 1))


def _disposition(row: RunAttachment, is_inline: bool) -> str:
    plain = f"attachment-{row.digest[:12]}.{row.extension}"
    name = row.name.replace("/", "_").replace("\\", "_").strip(". ") or plain
    way = "inline" if is_inline else "attachment"
    return f"{way}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
