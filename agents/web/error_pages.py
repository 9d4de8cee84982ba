"""Error pages: they keep the navigation and need no database, which may be the error."""

import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from agents.db.errors import is_disk_full

from . import branding
from .api_errors import error_response, forbidden_response, is_api

HOOK_PREFIX = "/hooks/"
RETRY_AFTER_SECONDS = "30"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the page of a request that can't be read; too much text is said to be so."""
    if isinstance(exception, RequestDataTooBig):
        return too_large(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    return render_error(request, 400)


def too_large(request: HttpRequest, limit: int) -> HttpResponse:
    """Render the page of a request whose body is larger than its sender may send there."""
    return render_error(request, 413, limit=filesizeformat(limit))


def disk_full(request: HttpRequest) -> HttpResponse:
    """Render the page of a request that couldn't be saved."""
    return render_error(request, 507)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request.path):
        return forbidden_response(request, exception)
    return render_error(request, 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render_error(request, 403, "403_csrf.html")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Render a failed request's page; say so if the disk is full or the database is down."""
    if is_disk_full(sys.exception()):
        return disk_full(request)
    if isinstance(sys.exception(), OperationalError):
        return unavailable(request)
    time = timezone.now().strftime("%Y-%m-%d %H:%M:%S UTC")
    return render_error(request, 500, time=time)


def unavailable(request: HttpRequest, sentence: str = "") -> HttpResponse:
    response = render_error(request, 503, sentence=sentence)
    response["Retry-After"] = RETRY_AFTER_SECONDS
    return response


def render_error(
    request: HttpRequest, status: int, template: str = "", **details: Any
) -> HttpResponse:
    # Other services call triggers, too.
    if is_api(request.path) or request.path.startswith(HOOK_PREFIX):
        return error_response(request, status, str(details.get("sentence", "")))
    # After an error of the server, only from what was already read.
    user = getattr(request, "_cached_user", None)
    if user is None and status < 500:
        try:
            user = getattr(request, "user", None)
            bool(user and user.is_staff)  # reads the row
        except DatabaseError:
            user = None
    is_signed_in = (
        user.is_authenticated
        if user is not None
        else settings.SESSION_COOKIE_NAME in request.COOKIES
    )
    context = {
        "is_signed_in": is_signed_in,
        "is_staff": bool(getattr(user, "is_staff", False)),
        "is_console": request.path.startswith(reverse("admin:index")),
        "branding": branding.last_read(),
        **details,
    }
    html = render_to_string(template or f"{status}.html", context)
    return HttpResponse(html, status=status)
