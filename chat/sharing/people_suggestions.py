"""Suggests people to share a chat with while their name is typed."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.web import people_suggestions
from chat.models import ChatSession


@require_GET
def suggest(request: UserRequest, pk: int) -> HttpResponse:
    """Return people whose name starts with the typed text, as options of a list."""
    chat = get_object_or_404(ChatSession.objects.owned_by(request.user), pk=pk)
    return people_suggestions.respond(request, _members(chat))


def find_people(chat: ChatSession, typed: str) -> list[people_suggestions.Suggestion]:
    """Return active users who aren't members of the chat yet."""
    return people_suggestions.find_people(typed, _members(chat))


def _members(chat: ChatSession) -> list[int]:
    return [chat.user_id, *chat.members.values_list("user", flat=True)]
