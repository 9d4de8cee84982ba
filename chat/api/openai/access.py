"""Who calls, and where a person finds what happened."""

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from agents.models import ApiKey, Run
from agents.web.origin import origin_of

from ..calls import Caller


def caller_of(request: HttpRequest, scope: str = ApiKey.Scope.ASK) -> Caller:
    """Return the program whose key the request has. Raises InsufficientScope."""
    caller = Caller(request.api_key)  # type: ignore[attr-defined]  # set by the middleware
    caller.require(scope)
    return caller


def trace_url(request: HttpRequest, run: Run) -> str:
    """Return the address of the run's trace."""
    path = reverse("trace:run", args=[run.pk], urlconf=settings.ROOT_URLCONF)
    return f"{origin_of(request)}{path}"
