"""Default response headers, besides those Django sets."""

from typing import Any, TypeVar

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

Response = TypeVar("Response", bound=HttpResponseBase)

DISABLED_FEATURES = [
    *("accelerometer", "camera", "display-capture", "geolocation", "gyroscope"),
    *("magnetometer", "midi", "payment", "serial", "usb"),
]
DEFAULT_HEADERS = {
    # Pages are personal: Back must not show them to the next user.
    "Cache-Control": "private, no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(
        # The composer records; frames of untrusted content can't.
        [*(f"{name}=()" for name in DISABLED_FEATURES), "microphone=(self)"]
    ),
}


@sync_and_async_middleware
def default_headers(get_response: Any) -> Any:
    """Set default headers; a view's own take precedence."""

    async def answer_async(request: HttpRequest) -> HttpResponse:
        return set_defaults(await get_response(request))

    def answer(request: HttpRequest) -> HttpResponse:
        return set_defaults(get_response(request))

    return answer_async if iscoroutinefunction(get_response) else answer


def set_defaults(response: Response) -> Response:
    """Set the default headers that a response doesn't have."""
    for name, value in DEFAULT_HEADERS.items():
        response.headers.setdefault(name, value)
    return response
