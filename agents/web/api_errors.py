"""Errors of the APIs, as JSON: RFC 9457, or OpenAI's shape under `/v1`."""

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from agents.access import api_keys

from .origin import origin_of

OPENAI_PREFIX = "/v1/"
# Other addresses below this one are pages.
MCP_PATH = "/mcp"
OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class ApiError(Exception):
    """Raised to answer an API request with this status; its text says what to do."""

    def __init__(self, status: int, detail: str, code: str = "", **fields: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.fields = fields


class InsufficientScope(PermissionDenied):
    """Raised if a key doesn't have the scope that a request needs."""

    def __init__(self, scope: str) -> None:
        sentence = _("This API key lacks the scope “%(scope)s”. Make one that has it.")
        super().__init__(sentence % {"scope": scope})
        self.scope = scope


def is_api(path: str) -> bool:
    """Whether programs call this path: without a session, and never answered with a page."""
    return f"{path}/".startswith(settings.API_PREFIXES) or path.rstrip("/") == MCP_PATH


def error_response(
    request: HttpRequest, status: int, detail: str = "", code: str = "", **fields: Any
) -> HttpResponse:
    """Return an error as the request's API words it; `fields` are added to it."""
    title = HTTPStatus(status).phrase
    if f"{request.path}/".startswith(OPENAI_PREFIX):
        kind = OPENAI_TYPES.get(status, "server_error" if status >= 500 else "")
        error = {
            "message": detail or title,
            "type": kind or "invalid_request_error",
            "param": fields.pop("param", None),
            "code": code or None,
        }
        response: HttpResponse = JsonResponse({"error": error | fields}, status=status)
    else:
        problem = {"type": "about:blank", "title": title, "status": status} | fields
        if detail:
            problem["detail"] = detail
        if code:
            problem["code"] = code
        response = JsonResponse(problem, status=status, content_type="application/problem+json")
    if status == HTTPStatus.UNAUTHORIZED:
        authorization = request.headers.get("Authorization", "")
        has_token = authorization.lower().startswith(api_keys.BEARER)
        error = {"error": "invalid_token"} if has_token else {}
        response["WWW-Authenticate"] = challenge(request, **error)
    return response


def forbidden_response(request: HttpRequest, error: Exception) -> HttpResponse:
    """Return that something isn't allowed; an app can ask its user for a missing scope."""
    response = error_response(request, 403, str(error), "permission_denied")
    if isinstance(error, InsufficientScope):
        response["WWW-Authenticate"] = scope_challenge(request, error)
    return response


def scope_challenge(request: HttpRequest, error: InsufficientScope) -> str:
    """Return what an app reads to ask its user for a scope."""
    return challenge(request, error="insufficient_scope", scope=error.scope)


def challenge(request: HttpRequest, **parameters: str) -> str:
    """Return how a program proves who it is, and where an app finds out how to sign in.

    The parameters are those of RFC 6750, which say what was wrong.
    """
    resource = MCP_PATH if request.path.rstrip("/") == MCP_PATH else ""
    metadata = f"{origin_of(request)}/.well-known/oauth-protected-resource{resource}"
    parameters["resource_metadata"] = metadata
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())
