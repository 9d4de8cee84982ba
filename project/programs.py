"""Requests of programs: answered apart from those of pages, with a key instead of a session.

They have no cookies, no sessions and no forms, so they need none of the middleware of pages,
much of which would change threads. What both need is here once more, from the same parts.
"""

import asyncio
from contextvars import copy_context
from importlib import import_module
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from agents.access.audit.request_context import bind_request
from agents.db import database
from agents.web import api_access, preferences
from agents.web.api_errors import ApiError, error_response, is_api
from agents.web.asgi.request_body import REFUSAL
from agents.web.middleware import describe_unavailable
from project import headers

# Set headers of a response, as settings say.
HEADER_MIDDLEWARE: tuple[Any, ...] = (
    SecurityMiddleware,
    CSPMiddleware,
    XFrameOptionsMiddleware,
)


class RefusingHandler(BaseHandler):
    """Resolves a request whose body wasn't accepted to the page that says why."""

    def resolve_request(self, request: Any) -> ResolverMatch:
        scope = getattr(request, "scope", {})  # only an ASGI server's requests have one
        refusal = scope.get("extensions", {}).get(REFUSAL)
        if refusal is None:
            return super().resolve_request(request)
        request.resolver_match = ResolverMatch(login_not_required(csrf_exempt(refusal)), (), {})
        return request.resolver_match


class ProgramMiddleware:
    """Has programs answered by a handler of their own, without the middleware that follows."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        self.handler = ProgramHandler()
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if not is_api(request.path):
            return self.get_response(request)
        if iscoroutinefunction(self):
            return self.handler.answer(request)
        return copy_context().run(async_to_sync(self.handler.answer), request)


class ProgramHandler(RefusingHandler):
    """Answers requests that have a key, in JSON only."""

    def __init__(self) -> None:
        super().__init__()
        self._view_middleware = self._template_response_middleware = ()
        self._exception_middleware = ()
        self._header_middleware = [
            middleware(lambda request: None) for middleware in HEADER_MIDDLEWARE
        ]
        self._respond_safely: Any = convert_exception_to_response(self._respond)
        self._is_loaded = False

    async def answer(self, request: Any) -> HttpResponseBase:
        """Return the response to a program, whatever happens."""
        request.COOKIES = {}
        request.urlconf = settings.API_URLCONF
        request.user = AnonymousUser()
        request.rate_headers = {}
        # Until a streamed response ends, too: the request has a context of its own.
        translation.activate(translation.get_language_from_request(request))
        with bind_request(request):
            response: Any = await self._respond_safely(request)
        response = api_access.as_json(request, response)
        for name, value in request.rate_headers.items():
            response[name] = value
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        response.headers.setdefault("Content-Language", translation.get_language())
        patch_vary_headers(response, ("Accept-Language",))
        for middleware in self._header_middleware:
            response = middleware.process_response(request, response)
        return headers.set_defaults(response)

    async def _respond(self, request: Any) -> HttpResponseBase:
        request.get_host()  # refuses names that aren't ours
        if not self._is_loaded:
            # The first request imports the protocols.
            await asyncio.to_thread(import_module, settings.API_URLCONF)
            self._is_loaded = True
        refusal, request.rate_headers = await database.run(api_access.admit, request)
        if refusal is not None:
            return refusal
        preferences.of_user(request.user, request.COOKIES).activate()
        get_response: Any = self._get_response_async  # type: ignore[attr-defined]
        try:
            return await get_response(request)
        except ApiError as error:
            return error_response(request, error.status, str(error), error.code, **error.fields)
        except Exception as error:
            if (response := describe_unavailable(request, error)) is not None:
                return response
            raise
