"""Types for annotations of requests and ASGI apps."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

if TYPE_CHECKING:
    from django_htmx.middleware import HtmxDetails

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class UserRequest(HttpRequest):
    """A request of a signed-in user, for annotations only: Django makes plain HttpRequests."""

    user: User
    htmx: "HtmxDetails"  # set by HtmxMiddleware

    if TYPE_CHECKING:

        async def auser(self) -> User: ...


def signed_in_user(request: HttpRequest) -> User:
    """Return the request's user; raise PermissionDenied if nobody is signed in."""
    if not request.user.is_authenticated:
        raise PermissionDenied
    return request.user
