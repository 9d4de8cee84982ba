"""Errors as RFC 9457 problems: those of ninja, and the rejections of services.

Everything else is an error of Django's, which its handlers answer in JSON under `/api`.
"""

from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import NinjaAPI, Schema
from ninja.errors import HttpError, ValidationError
from pydantic import Field

from agents.access.recently_deleted import CannotRestore
from agents.knowledge.files import FileRefused
from agents.review.annotations.feedback import FeedbackRejected
from agents.review.experiments.errors import ExperimentRejected
from agents.web.api_errors import ApiError, error_response, forbidden_response
from agents.web.library.uploads import UploadRejected
from agents.web.workflows.start import WorkflowNotStarted
from chat.errors import MessageRejected

# Raised by services with a sentence for the user.
REJECTIONS: dict[type[Exception], str] = {
    CannotRestore: "not_restorable",
    ExperimentRejected: "experiment_rejected",
    FeedbackRejected: "feedback_rejected",
    FileRefused: "file_rejected",
    MessageRejected: "message_rejected",
    UploadRejected: "file_rejected",
    WorkflowNotStarted: "workflow_not_started",
}
MAX_PROBLEMS = 20


class InvalidField(Schema):
    field: str = Field(description="Path of the field, e.g. `text` or `files.0`.")
    location: str = Field(description="`body`, `query`, `path`, `form` or `file`.")
    message: str


class Problem(Schema):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str | None = Field(None, description="What happened, and what to do about it.")
    code: str | None = Field(None, description="The same in every language, for programs.")
    errors: list[InvalidField] | None = Field(None, description="Invalid fields, if any.")


def install(api: NinjaAPI) -> None:
    api.add_exception_handler(ValidationError, _invalid)
    api.add_exception_handler(HttpError, _http_error)
    api.add_exception_handler(ApiError, _api_error)
    api.add_exception_handler(Http404, _not_found)
    api.add_exception_handler(PermissionDenied, _forbidden)
    for rejection in REJECTIONS:
        api.add_exception_handler(rejection, _rejected)


def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    errors = [_field(item) for item in cast(ValidationError, error).errors[:MAX_PROBLEMS]]
    first = errors[0]
    detail = _("%(field)s: %(problem)s") % {
        "field": first["field"] or first["location"],
        "problem": first["message"],
    }
    return error_response(request, 422, detail, "invalid_request", errors=errors)


def _field(item: dict[str, Any]) -> dict[str, str]:
    location, *path = map(str, item["loc"])
    if location == "body":
        path = path[1:]  # the first is the name of the operation's parameter
    return {"location": location, "field": ".".join(path), "message": item["msg"]}


def _http_error(request: HttpRequest, error: Any) -> HttpResponse:
    """Answer what ninja raises; what our parser raised is inside of it."""
    if isinstance(error.__cause__, ApiError):
        return _api_error(request, error.__cause__)
    if error.status_code == 400:
        return error_response(request, 400, _("The body isn’t valid JSON."), "invalid_json")
    return error_response(request, error.status_code)


def _not_found(request: HttpRequest, error: Any) -> HttpResponse:
    sentence = _("This doesn’t exist, or isn’t yours to see.")
    return error_response(request, 404, sentence, "not_found")


def _forbidden(request: HttpRequest, error: Any) -> HttpResponse:
    return forbidden_response(request, error)


def _api_error(request: HttpRequest, error: Any) -> HttpResponse:
    return error_response(request, error.status, str(error), error.code, **error.fields)


def _rejected(request: HttpRequest, error: Any) -> HttpResponse:
    code = next(REJECTIONS[kind] for kind in type(error).__mro__ if kind in REJECTIONS)
    return error_response(request, 422, str(error), code)
