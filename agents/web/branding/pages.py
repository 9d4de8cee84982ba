"""Files of the branding, which the sign-in page needs as well, and dismissing its banner."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from agents.db.installation.branding import COLOR, LOGOS
from agents.db.installation.setting import ROWS
from agents.knowledge import files
from agents.models import StoredFile

from . import colors

FOREVER = "public, max-age=31536000, immutable"  # a change has another URL
LOGO_TYPES = {"svg": "image/svg+xml", "webp": "image/webp"}
# Some browsers apply it to images, too: an SVG can have styles, but no script and nothing from
# elsewhere.
SVG_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
DISMISSED = "ashiato_banner"
DISMISSED_SECONDS = 365 * 24 * 3600


@login_not_required
@require_GET
def stylesheet(request: HttpRequest, revision: int, color: str) -> HttpResponse:
    """Return the stylesheet of any color, so that the console can preview it."""
    if revision != colors.REVISION or not COLOR.fullmatch(f"#{color}"):
        raise Http404
    return HttpResponse(
        colors.derive(f"#{color}").stylesheet,
        content_type="text/css; charset=utf-8",
        headers={"Cache-Control": FOREVER},
    )


@login_not_required
@require_GET
def logo(request: HttpRequest, name: str) -> HttpResponseBase:
    """Return a logo that is in use; its name is the digest and the type of its content."""
    if name not in {ROWS.get().get(key) for key in LOGOS}:
        raise Http404
    digest, _dot, ending = name.partition(".")
    headers = {"Cache-Control": FOREVER}
    if ending == "svg":
        headers["Content-Security-Policy"] = SVG_POLICY
    return files.serve(
        request,
        get_object_or_404(StoredFile, digest=digest),
        name=f"logo.{ending}",
        mime_type=LOGO_TYPES[ending],
        inline_types=frozenset(LOGO_TYPES.values()),
        headers=headers,
    )


@login_not_required
@require_POST
def dismiss(request: HttpRequest, version: str) -> HttpResponse:
    """Hide this version of the banner in this browser."""
    if "HX-Request" in request.headers:
        response = HttpResponse()
    else:
        target = request.POST.get("next", "")
        is_ours = url_has_allowed_host_and_scheme(target, {request.get_host()})
        response = redirect(target if is_ours else "/")
    response.set_cookie(
        DISMISSED,
        version,
        max_age=DISMISSED_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


urls = (
    [
        path("branding/<int:revision>/<slug:color>.css", stylesheet, name="colors"),
        path("branding/logo/<str:name>", logo, name="logo"),
        path("branding/banner/<slug:version>/dismiss/", dismiss, name="dismiss"),
    ],
    "branding",
)
