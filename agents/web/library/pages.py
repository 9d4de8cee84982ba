"""Where a collection is displayed: in the library, or inside the admin console."""

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

LIBRARY = "library:collection"
CONSOLE = "admin:agents_collection_documents"


def is_console(request: HttpRequest) -> bool:
    """Whether the request is of the console's page, or sent by a form on it."""
    console = reverse("admin:index")
    sender = (
        urlsplit(request.headers.get("Referer", "")).path if request.method == "POST" else ""
    )
    return request.path.startswith(console) or sender.startswith(console)


def collection_url(request: HttpRequest, pk: int) -> str:
    return reverse(CONSOLE if is_console(request) else LIBRARY, args=[pk])


def to_collection(request: HttpRequest, pk: int) -> HttpResponse:
    """Lead back to the page from which a form was sent."""
    return redirect(collection_url(request, pk))
