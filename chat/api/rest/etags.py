"""ETags: reading what is unchanged costs nothing, and no edit overwrites an unseen one."""

import hashlib
from typing import TypeVar

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from pydantic import BaseModel

from agents.web.api_errors import ApiError

Value = TypeVar("Value", bound=BaseModel)


def etag_of(value: BaseModel) -> str:
    digest = hashlib.sha256(value.model_dump_json().encode()).hexdigest()
    return f'"{digest[:32]}"'


def tagged(
    request: HttpRequest, response: HttpResponse, value: Value
) -> Value | HttpResponseNotModified:
    """Return the value and its ETag, or 304 if the client has this version."""
    etag = etag_of(value)
    known = parse_etags(request.headers.get("If-None-Match", ""))
    if request.method == "GET" and etag in known:
        unchanged = HttpResponseNotModified()
        unchanged["ETag"] = etag
        return unchanged
    response["ETag"] = etag
    return value


def check_unchanged(request: HttpRequest, value: BaseModel) -> None:
    """Raise ApiError if the client has seen another version than this one."""
    seen = request.headers.get("If-Match", "").strip() or "*"
    # What isn't an ETag is another version, too.
    if seen != "*" and etag_of(value) not in parse_etags(seen):
        raise ApiError(
            412,
            _("This was changed since you read it. Read it again, then repeat your change."),
            "changed",
        )
