"""Suggests people to share with while their name is typed.

Off unless the installation allows it: suggestions reveal who else has an account.
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import render

from agents.access.api_keys import service_accounts
from agents.access.names import display_name
from agents.access.requests import UserRequest
from agents.access.visitors import visitor_accounts
from agents.db.installation import configured
from agents.db.sanitize import sanitize_line

from . import request_rate

MIN_CHARS = 2
MAX_PEOPLE = 8
MAX_REQUESTS = 60  # per minute and user
MAX_NAME_CHARS = 150


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A user to add: the name to enter, and the name people know them by."""

    username: str
    full_name: str


def respond(request: UserRequest, members: Collection[int]) -> HttpResponse:
    """Return people whose name starts with the typed text, as options of a list."""
    if not configured.SUGGEST_USERS.value:
        raise Http404
    if request_rate.is_exceeded("people", request.user.pk, MAX_REQUESTS):
        return HttpResponse(status=429)
    people = find_people(request.GET.get("name", ""), members)
    response = render(request, "layout/_people_suggestions.html", {"people": people})
    response["Cache-Control"] = "no-store"
    return response


def find_people(
    typed: str, members: Collection[int], *, has_emails: bool = False
) -> list[Suggestion]:
    """Return active users who aren't members yet, by their names or also their addresses."""
    typed = sanitize_line(typed)[:MAX_NAME_CHARS]
    if not is_long_enough(typed):
        return []
    full_name = Q()
    for name in typed.split():
        full_name &= Q(first_name__istartswith=name) | Q(last_name__istartswith=name)
    shown_name = Q(profile__display_name__istartswith=typed)
    shown_name |= Q(profile__display_name__icontains=f" {typed}")  # a later word of it
    is_match = Q(username__istartswith=typed) | shown_name | full_name
    if has_emails:
        is_match |= Q(email__istartswith=typed)
    people = get_user_model().objects.exclude(pk__in=service_accounts().values("pk"))
    people = people.exclude(pk__in=visitor_accounts().values("pk"))
    users = people.filter(is_match, is_active=True).select_related("profile")
    suggestions = []
    for user in users.exclude(pk__in=members).order_by("username")[:MAX_PEOPLE]:
        # The name others know the person by, besides the username.
        name = display_name(user)
        name = user.get_full_name() if name == user.get_username() else name
        suggestions.append(Suggestion(user.get_username(), name))
    return suggestions


def is_long_enough(typed: str) -> bool:
    """Whether the text is worth a search; one Japanese character can be a whole name."""
    return len(typed) >= MIN_CHARS or any(ord(char) > 0x2E80 for char in typed)
