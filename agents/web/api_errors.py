"""Errors of the APIs, as JSON: RFC 9457, or OpenAI's shape under `/v1`."""

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

OPENAI_PREFIX = "/v1/"
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


def is_api(path: str) -> bool:
    """Whether programs call this path: without a session, and never answered with a page."""
    return path.startswith(settings.API_PREFIXES)


def error_response(
    request: HttpRequest, status: int, detail: str = "", code: str = "", **fields: Any
) -> HttpResponse:
    """Return an error as the request's API words it; `fields` are added to it."""
    title = HTTPStatus(status).phrase
    if request.path.startswith(OPENAI_PREFIX):
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
        response["WWW-Authenticate"] = challenge(request)
    return response


def challenge(request: HttpRequest) -> str:
    """Return how a program proves who it is, and where an app finds out how to sign in."""
    metadata = request.build_absolute_uri("/.well-known/oauth-protected-resource")
    return f'Bearer resource_metadata="{metadata}"'
