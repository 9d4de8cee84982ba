"""Under which of its origins a request reached the installation."""

from django.conf import settings
from django.http import HttpRequest


def origin_of(request: HttpRequest) -> str:
    """Return the request's origin if it is one of ours, otherwise the first of ours.

    The Host header alone proves nothing: Django ignores the port when it checks it.
    """
    origin = f"{request.scheme}://{request.get_host()}"
    return origin if origin in settings.ORIGINS else settings.ORIGINS[0]
