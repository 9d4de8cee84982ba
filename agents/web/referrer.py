"""The page a form was sent from, to return to."""

from urllib.parse import urlsplit, urlunsplit

from django.http import HttpRequest
from django.urls import Resolver404, resolve


def previous_page(request: HttpRequest) -> str:
    """Return the path and query of the page in `Referer`, or an empty string if it isn't ours.

    The header can be anything: no path, no URL at all, or two slashes that a browser reads as
    another host.
    """
    try:
        referrer = urlsplit(request.headers.get("Referer", ""))
        if referrer.netloc != request.get_host() or referrer.path.startswith(("//", "/\\")):
            return ""
        resolve(referrer.path)
    except (ValueError, Resolver404):
        return ""
    return urlunsplit(("", "", referrer.path, referrer.query, ""))
