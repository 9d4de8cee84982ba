"""The addresses of the REST API."""

import json
from functools import cache

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import translation
from django.views.decorators.http import require_safe

from .app import api


@login_not_required
@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, which needs no key."""
    return HttpResponse(_document(), content_type="application/json")


@cache
def _document() -> bytes:
    with translation.override("en"):
        return json.dumps(api.get_openapi_schema(), ensure_ascii=False).encode()


urlpatterns = [path("openapi.json", openapi), path("", api.urls)]
