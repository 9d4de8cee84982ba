"""The agent card that everybody can read; the SDK is loaded by the first who does."""

from importlib import import_module

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET


@login_not_required
@require_GET
def public_card(request: HttpRequest) -> HttpResponse:
    """Return the card of the installation, which names no agent."""
    cards = import_module("chat.api.a2a.cards")
    return JsonResponse(cards.as_json(cards.public_card(request)))
