"""Links to one run: created, revoked and opened."""

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import audit, masking
from agents.access.masking import Masker
from agents.access.requests import UserRequest
from agents.review import sharing
from agents.review.models import ShareLink
from agents.review.run_details.audited_reading import ReadableRun, open_run
from agents.web.presentation import RunView
from agents.web.sandbox import allow_frames

# Private: not cached, not indexed, and not sent to other sites.
PRIVATE_HEADERS = {
    "Cache-Control": "no-store, private",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Referrer-Policy": "no-referrer",
}


@require_http_methods(["GET", "POST"])
def share(request: UserRequest, pk: int) -> HttpResponse:
    """Create a link and display it once."""
    readable = _open_shareable(request, pk)
    if request.method == "GET":
        return _render_panel(request, readable, {})
    level = request.POST.get("level", "")
    hours = request.POST.get("hours", "")
    chosen = {"level": level, "lasts": hours}
    try:
        token = sharing.create_link(
            readable.row, request.user, level, hours, is_masked=readable.is_masked
        )
    except (sharing.ShareLinkRejected, audit.NotRecorded) as reason:
        return _render_panel(request, readable, chosen | {"problem": str(reason)}, status=422)
    url = request.build_absolute_uri(reverse("trace:shared", args=[token]))
    return _render_panel(request, readable, chosen | {"made": url})


@require_POST
def revoke(request: UserRequest, pk: int, link: int) -> HttpResponse:
    readable = _open_shareable(request, pk)
    share_link = get_object_or_404(sharing.active_links(readable.row, request.user), pk=link)
    sharing.revoke(share_link, request.user)
    return _render_panel(request, readable, {}) if request.htmx else redirect("trace:share", pk)


def _open_shareable(request: UserRequest, pk: int) -> ReadableRun:
    readable = open_run(request, pk)
    if not sharing.can_share(readable.row, request.user):
        raise Http404
    return readable


@login_not_required
@require_GET
@allow_frames
def shared_run(request: HttpRequest, token: str) -> HttpResponse:
    link = sharing.open_link(token, request.user)
    if link is None:
        response = render(request, "trace/shared_gone.html", status=404)
    else:
        is_masked = link.level != ShareLink.Level.AUDITOR
        is_whole = link.level != ShareLink.Level.PERSON
        view = RunView(
            masking.mask_row(link.run) if is_masked else link.run,
            # As on a run's page, steps are loaded in brief, unless everything is displayed.
            "shared" if is_whole else "trace",
            may_decide=False,
            masker=Masker() if is_masked else None,
            shows_results=is_whole,
        )
        context = {"link": link, "view": view, "is_whole": is_whole, "is_masked": is_masked}
        response = render(request, "trace/shared.html", context)
    for name, value in PRIVATE_HEADERS.items():
        response[name] = value
    return response


def _render_panel(
    request: UserRequest, readable: ReadableRun, message: dict[str, str], status: int = 200
) -> HttpResponse:
    context = {"view": readable.view(), "is_open": True, **message}
    # htmx doesn't swap error responses, so the status stays 200.
    if request.htmx:
        response = render(request, "trace/_share.html", context)
    else:
        response = render(request, "trace/share.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
