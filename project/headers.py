"""What every answer tells the browser, besides what Django itself makes of the settings."""

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

UNUSED = ("accelerometer", "camera", "display-capture", "geolocation", "gyroscope")
UNUSED += ("magnetometer", "microphone", "midi", "payment", "serial", "usb")
PROMISES = {
    # What a page shows is somebody's: Back must not show it to whoever comes after them.
    "Cache-Control": "private, no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in UNUSED),
}


@sync_and_async_middleware
def promising(get_response: Any) -> Any:
    """A view that promises something else keeps that."""

    async def answer_async(request: HttpRequest) -> HttpResponse:
        return _promised(await get_response(request))

    def answer(request: HttpRequest) -> HttpResponse:
        return _promised(get_response(request))

    return answer_async if iscoroutinefunction(get_response) else answer


def _promised(response: HttpResponse) -> HttpResponse:
    for name, value in PROMISES.items():
        response.headers.setdefault(name, value)
    return response
