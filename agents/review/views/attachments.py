"""Files that tools returned: displayed if they are images or sounds, downloaded otherwise."""

from dataclasses import replace

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.access import audit, masking
from agents.access.requests import UserRequest
from agents.knowledge.files import images, serving
from agents.models import Run, RunAttachment
from agents.review import sharing
from agents.review.models import ShareLink
from agents.review.run_details.audited_reading import open_run
from agents.review.run_details.file_texts import find_file_text

from .sharing import PRIVATE_HEADERS

UNCACHED_HEADERS = {"Cache-Control": "no-store, private"}


@require_safe
def attachment(request: UserRequest, pk: int, digest: str) -> HttpResponseBase:
    """Return a file of a run; one that may contain personal data can't be masked."""
    readable = open_run(request, pk)
    if readable.is_masked:
        raise PermissionDenied(_("Unmask this run to see its files."))
    # Access can end any time: a member's browser asks again, and a reviewer's keeps no copy.
    is_participant = masking.is_participant(readable.row, request.user)
    headers = serving.REVALIDATED if is_participant else UNCACHED_HEADERS
    return _respond(request, readable.row, digest, headers)


@require_safe
def file_text(request: UserRequest, pk: int, number: int) -> HttpResponse:
    """Return the text that the model got of a file of the question, masked for others."""
    readable = open_run(request, pk)
    files = readable.row.files
    if not 0 < number <= len(files):
        raise Http404
    file = files[number - 1]
    extracted = find_file_text(readable.row, file)
    if extracted is not None and readable.is_masked:
        extracted = replace(extracted, text=masking.mask_text(extracted.text))
    if file["kind"] == "image":
        missing_reason = _(
            "The model received the image itself. No text was extracted from it."
        )
    else:
        missing_reason = _("No request in this run contains text from this file.")
    context = {
        "found": extracted,
        "text": extracted.excerpt if extracted else None,
        "nothing": missing_reason,
        "view": readable.view(),
    }
    response = render(request, "trace/_file_text.html", context)
    response["Cache-Control"] = "no-store, private"
    return response


@login_not_required
@require_safe
def shared_attachment(request: HttpRequest, token: str, digest: str) -> HttpResponseBase:
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
) -> HttpResponseBase:
    rows = RunAttachment.objects.filter(run=run, digest=digest).select_related("file")
    row = get_object_or_404(rows)
    file = row.file
    if request.GET.get("size") == "thumbnail" and images.has_thumbnail(
        file, owner=request.user.pk
    ):
        return serving.serve_thumbnail(request, file, headers=headers)
    return serving.serve(request, file, name=row.name, mime_type=row.mime_type, headers=headers)
