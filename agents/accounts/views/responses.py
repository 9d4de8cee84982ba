"""What a page's script sends about a passkey, and is told."""

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from agents.accounts.passkeys import PasskeyRejected


def options_response(make: Callable[[], dict[str, Any]]) -> HttpResponse:
    """What the browser is to do, or why not."""
    try:
        return JsonResponse(make())
    except PasskeyRejected as reason:
        return JsonResponse({"wrong": str(reason)})


def result_response(
    request: HttpRequest, take: Callable[[dict[str, Any]], str]
) -> HttpResponse:
    """Where the page goes on with what the browser did, or why that was not taken."""
    try:
        return JsonResponse({"to": take(_parse_body(request))})
    except PasskeyRejected as reason:
        return JsonResponse({"wrong": str(reason)})


def _parse_body(request: HttpRequest) -> dict[str, Any]:
    try:
        told = json.loads(request.body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("answer"), dict):
        raise PasskeyRejected(_("The page sent an invalid request. Reload it and try again."))
    return told
