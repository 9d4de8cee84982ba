"""The language of a page that opens a socket."""

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation

from agents.access.requests import Scope


def page_language(scope: Scope, of_page: str) -> str:
    """Return the page's language; if unknown, that of the cookie or the browser."""
    # Not every browser sends Accept-Language when it opens a socket.
    if of_page in dict(settings.LANGUAGES):
        return of_page
    request = HttpRequest()
    request.COOKIES = scope["cookies"]
    accepted = dict(scope["headers"]).get(b"accept-language", b"")
    request.META["HTTP_ACCEPT_LANGUAGE"] = accepted.decode("latin-1")
    return translation.get_language_from_request(request)
