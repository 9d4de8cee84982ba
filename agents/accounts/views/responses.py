"""JSON responses for passkeys."""

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from agents.accounts.authentication.passkeys import PasskeyRejected


def options_response(make: Callable[[], dict[str, Any]]) -> HttpResponse:
    """Return the browser's options, or the reason for a rejection."""
    try:
        return JsonResponse(make())
    except PasskeyRejected as reason:
        return JsonResponse({"wrong": str(reason)})


def result_response(
    request: HttpRequest, take: Callable[[dict[str, Any]], str]
) -> HttpResponse:
    """Return the next page, or why the passkey was rejected."""
    try:
        data = json.loads(request.body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or not isinstance(data.get("answer"), dict):
        sentence = _("The page sent an invalid request. Reload it and try again.")
        return JsonResponse({"wrong": sentence})
    try:
        return JsonResponse({"to": take(data)})
    except PasskeyRejected as reason:
        return JsonResponse({"wrong": str(reason)})
