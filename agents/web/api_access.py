"""Requests of programs: whose key they have, how many there may be, and what went wrong."""

import math

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from agents.access import api_keys
from agents.db.installation import configured
from agents.engine.resilience import TokenBucket
from agents.models import ApiKey

from . import request_rate
from .api_errors import InsufficientScope, error_response

# Descriptions of an API, for programs that don't have a key yet.
PUBLIC_PATHS = {"/api/v1/openapi.json"}


class ApiRequest(HttpRequest):
    """A request with a key, for annotations only: Django makes plain HttpRequests."""

    api_key: ApiKey


def admit(request: HttpRequest) -> tuple[HttpResponse | None, dict[str, str]]:
    """Let a program in that has a key, within its rate limit.

    Returns why it isn't let in, if it isn't, and headers that say what is left of the limit.
    """
    if request.path in PUBLIC_PATHS:
        return None, {}
    key = api_keys.find(request.headers.get("Authorization", ""))
    if key is None:
        sentence = _("Send a valid API key: “Authorization: Bearer ash_…”.")
        return error_response(request, 401, sentence, "invalid_api_key"), {}
    bucket = bucket_of(key)
    if not bucket.allows():
        sentence = _("This key has reached its limit of %(most)d requests per minute.")
        response = error_response(
            request, 429, sentence % {"most": bucket.capacity}, "rate_limit_exceeded"
        )
        response["Retry-After"] = str(math.ceil(bucket.seconds_until_free()))
        return response, {}
    api_keys.note_use(key)
    request.api_key = key  # type: ignore[attr-defined]
    request.user = key.user
    return None, {
        "RateLimit-Limit": str(int(bucket.capacity)),
        "RateLimit-Remaining": str(max(0, int(bucket.capacity - bucket.used))),
        "RateLimit-Reset": str(math.ceil(bucket.used / bucket.per_second)),
    }


def as_json(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return the response, or an error in JSON instead of an error page."""
    is_page = response.status_code >= 400 and "json" not in response.get("Content-Type", "")
    if not is_page or response.streaming:
        return response
    described = error_response(request, response.status_code)
    if allowed := response.get("Allow"):
        described["Allow"] = allowed
    return described


def bucket_of(key: ApiKey) -> TokenBucket:
    """Return what is left of the key's requests, in this process."""
    most = key.requests_per_minute or configured.API_REQUESTS_PER_MINUTE.value
    return request_rate.bucket_of("api", key.pk, most)


def require(key: ApiKey, scope: str) -> None:
    """Raise InsufficientScope if the key may not do this."""
    if scope not in key.scopes:
        raise InsufficientScope(scope)
