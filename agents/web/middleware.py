"""Middleware: the audit log's request, sign-in requirements, and what is unavailable."""

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext_lazy as _

from agents.access import authentication
from agents.access.audit import NotRecorded, request_context
from agents.access.passwords import PasswordsBusy

from . import error_pages

NOT_AUDITED = _(
    "Another user’s run can’t be opened right now, because the audit log can’t be written."
)


@sync_and_async_middleware
def audit_context_middleware(get_response: Any) -> Any:
    """Bind the request, so that audit entries have its user and origin."""

    async def answer_async(request: HttpRequest) -> HttpResponse:
        with request_context.bind_request(request):
            return await get_response(request)

    def answer(request: HttpRequest) -> HttpResponse:
        with request_context.bind_request(request):
            return get_response(request)

    return answer_async if iscoroutinefunction(get_response) else answer


class RequireMfaMiddleware(MiddlewareMixin):
    """Ends sessions that don't meet the current sign-in requirements."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        user = request.user
        if not user.is_authenticated or authentication.has_required_mfa(request.session, user):
            return None
        logout(request)
        return redirect_to_login(request.get_full_path())


class UnavailableMiddleware(MiddlewareMixin):
    """Says what can't be done right now, and why."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return describe_unavailable(request, error)


def describe_unavailable(request: HttpRequest, error: Exception) -> HttpResponse | None:
    """Return the response to an error that passes; None for others."""
    if isinstance(error, PasswordsBusy):
        return error_pages.unavailable(request, str(error))
    if isinstance(error, NotRecorded):
        # Another user's run must not be viewed without an audit entry.
        return error_pages.unavailable(request, f"{NOT_AUDITED} {error}")
    return None
