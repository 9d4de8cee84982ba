"""Pages for frames with untrusted content.

They have no origin, no cookies and no storage, and load nothing, even if opened directly: their
own response says so. WebRTC is the exception: browsers have no policy for it yet.
Content arrives by `postMessage`, so it is never in a URL or stored here.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from csp.constants import SELF
from csp.decorators import csp_update
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_GET

View = TypeVar("View", bound=Callable[..., HttpResponse])

# Never allow-same-origin: with scripts it would undo the sandbox.
COMMON = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'none'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'"
)
SCRIPTS = {
    "diagram": "'self'",  # Mermaid's; a diagram has none of its own
    "preview": "'unsafe-inline'",  # the previewed page's, but no script from any URL
}
FONTS = {"diagram": "'none'", "preview": "data:"}


def allow_frames(view: View) -> View:
    """Let a page have frames: only those with answers can."""
    decorate: Any = csp_update({"frame-src": [SELF]})
    return cast(View, decorate(view))


@login_not_required
@require_GET
@xframe_options_exempt
def frame(request: HttpRequest, kind: str) -> HttpResponse:
    """Return an empty page that displays what its parent sends."""
    response = render(request, f"sandbox/{kind}.html")
    policy = f"{COMMON}; script-src {SCRIPTS[kind]}; font-src {FONTS[kind]}"
    response["Content-Security-Policy"] = policy
    response["X-DNS-Prefetch-Control"] = "off"
    response["Referrer-Policy"] = "no-referrer"
    return response
