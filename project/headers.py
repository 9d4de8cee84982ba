"""Default response headers, besides those Django sets."""

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

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
        return _set_defaults(await get_response(request))

    def answer(request: HttpRequest) -> HttpResponse:
        return _set_defaults(get_response(request))

    return answer_async if iscoroutinefunction(get_response) else answer


def _set_defaults(response: HttpResponse) -> HttpResponse:
    for name, value in DEFAULT_HEADERS.items():
        response.headers.setdefault(name, value)
    return response
