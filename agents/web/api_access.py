"""Requests of programs: whose key they have, how many there may be, and what went wrong."""

import math
from importlib import import_module
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from agents.access import api_keys
from agents.db.installation import configured
from agents.engine.resilience import TokenBucket
from agents.models import ApiKey

from . import api_errors, request_rate
from .api_errors import ApiError, error_response

# Descriptions of an API, for programs that don't have a key yet.
PUBLIC_PATHS = {"/api/v1/openapi.json"}


class ApiRequest(HttpRequest):
    """A request with a key, for annotations only: Django makes plain HttpRequests."""

    api_key: ApiKey


@sync_and_async_middleware
def ignore_cookies(get_response: Any) -> Any:
    """Leave out a program's cookies, before a session or a language is read from them."""

    def without_cookies(request: HttpRequest) -> HttpRequest:
        if api_errors.is_api(request.path):
            request.COOKIES = {}
        return request

    async def answer_async(request: HttpRequest) -> HttpResponse:
        return await get_response(without_cookies(request))

    def answer(request: HttpRequest) -> HttpResponse:
        return get_response(without_cookies(request))

    return answer_async if iscoroutinefunction(get_response) else answer


class ApiKeyMiddleware(MiddlewareMixin):
    """Lets programs in with a key, within its rate limit, and answers them in JSON only."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not api_errors.is_api(request.path):
            return None
        # The first call imports the protocols: on this thread, not on the event loop.
        import_module(settings.API_URLCONF)
        request.urlconf = settings.API_URLCONF
        request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]  # no session counts
        request.user = AnonymousUser()
        if request.path in PUBLIC_PATHS:
            return None
        key = api_keys.find(request.headers.get("Authorization", ""))
        if key is None:
            return error_response(
                request,
                401,
                _("Send a valid API key: “Authorization: Bearer ash_…”."),
                "invalid_api_key",
            )
        bucket = bucket_of(key)
        if not bucket.allows():
            seconds = math.ceil(bucket.seconds_until_free())
            response = error_response(
                request,
                429,
                _("This key has reached its limit of %(most)d requests per minute.")
                % {"most": bucket.capacity},
                "rate_limit_exceeded",
            )
            response["Retry-After"] = str(seconds)
            return response
        api_keys.note_use(key)
        request.api_key = key  # type: ignore[attr-defined]
        request.user = key.user

        async def auser() -> object:
            return key.user

        request.auser = auser  # type: ignore[assignment]
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, ApiError):
            return error_response(request, error.status, str(error), error.code, **error.fields)
        return None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if not api_errors.is_api(request.path):
            return response
        is_page = response.status_code >= 400 and "json" not in response.get("Content-Type", "")
        if is_page and not response.streaming:
            allowed = response.get("Allow")
            response = error_response(request, response.status_code)
            if allowed:
                response["Allow"] = allowed
        if key := getattr(request, "api_key", None):
            bucket = bucket_of(key)
            response["RateLimit-Limit"] = str(int(bucket.capacity))
            response["RateLimit-Remaining"] = str(max(0, int(bucket.capacity - bucket.used)))
            response["RateLimit-Reset"] = str(math.ceil(bucket.used / bucket.per_second))
        return response


def bucket_of(key: ApiKey) -> TokenBucket:
    """Return what is left of the key's requests, in this process."""
    most = key.requests_per_minute or configured.API_REQUESTS_PER_MINUTE.value
    return request_rate.bucket_of("api", key.pk, most)


def require(key: ApiKey, scope: str) -> None:
    """Raise PermissionDenied if the key may not do this."""
    if scope not in key.scopes:
        raise PermissionDenied(
            _("This API key lacks the scope “%(scope)s”. Make one that has it.")
            % {"scope": scope}
        )
