from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from agents.audit import NotRecorded

TRY_AGAIN = "30"  # seconds


class NothingUnrecorded(MiddlewareMixin):
    """Who looks at another's run where that cannot be kept is told so, and shown nothing."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, NotRecorded):
            return None
        response = render(request, "503.html", {"sentence": str(error)}, status=503)
        response["Retry-After"] = TRY_AGAIN
        return response
