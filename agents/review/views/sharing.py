"""Links to one run: made, ended, and opened by whoever has one."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agents import masking
from agents.display import RunView
from agents.masking import Veil
from agents.review import sharing
from agents.review.models import ShareLink
from agents.review.reading import read

# It is for whoever was given it: kept nowhere, found by nobody, and told to no other site.
QUIET = {
    "Cache-Control": "no-store, private",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Referrer-Policy": "no-referrer",
}


@require_POST
def share(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a link, and show it: it is not shown again."""
    found = read(request, pk)
    context = {"view": RunView(found.run, place="trace", veil=found.veil), "is_open": True}
    level, hours = request.POST.get("level", ""), request.POST.get("hours", "")
    try:
        token = sharing.make(found.row, request.user, level, hours, is_masked=found.is_masked)
    except sharing.NotShared as reason:
        return _panel(request, context | {"problem": str(reason)}, 422)
    url = request.build_absolute_uri(reverse("trace:shared", args=[token]))
    return _panel(request, context | {"made": url})


@require_POST
def revoke(request: HttpRequest, pk: int, link: int) -> HttpResponse:
    found = read(request, pk)
    sharing.revoke(
        get_object_or_404(sharing.links(found.row, request.user), pk=link), request.user
    )
    if not request.htmx:
        return redirect(f"{reverse('trace:run', args=[pk])}#share")
    context = {"view": RunView(found.run, place="trace", veil=found.veil), "is_open": True}
    return _panel(request, context)


@login_not_required
@require_GET
def shared(request: HttpRequest, token: str) -> HttpResponse:
    link = sharing.open_link(token, request.user)
    if link is None:
        response = render(request, "trace/shared_gone.html", status=404)
    else:
        response = render(request, "trace/shared.html", _shown(link))
    for name, value in QUIET.items():
        response[name] = value
    return response


def _shown(link: ShareLink) -> dict[str, object]:
    is_masked = link.level != ShareLink.Level.AUDITOR
    run = masking.masked(link.run) if is_masked else link.run
    view = RunView(run, place="trace", may_decide=False, veil=Veil() if is_masked else None)
    is_whole = link.level != ShareLink.Level.PERSON
    return {"link": link, "view": view, "is_whole": is_whole, "is_masked": is_masked}


def _panel(request: HttpRequest, context: dict[str, object], status: int = 200) -> HttpResponse:
    # A page that takes elements in leaves out answers that say that something is wrong.
    if request.htmx:
        response = render(request, "trace/_share.html", context)
    else:
        response = render(request, "trace/share.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
