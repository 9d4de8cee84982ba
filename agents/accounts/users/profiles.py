"""Profiles: saved preferences, and the middleware that applies them to every page."""

import logging
import unicodedata
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils import translation

from agents.db.sanitize import sanitize_text
from agents.web import preferences

from ..models import Profile
from . import confusable_names

logger = logging.getLogger(__name__)


def of_user(user: User) -> Profile:
    """Return the user's profile, or a new one that isn't saved."""
    return getattr(user, "profile", None) or Profile(user=user)


def save_setting(user: User, **values: Any) -> None:
    """Save single settings of a user's profile."""
    user.profile = Profile.objects.update_or_create(user=user, defaults=values)[0]


def clean_name(text: str) -> str:
    """Return a display name on one line, without invisible characters."""
    plain = unicodedata.normalize("NFC", sanitize_text(text))
    visible = "".join(c for c in plain if unicodedata.category(c)[0] != "C" or c in "\n\t ")
    return " ".join(visible.split())


def is_taken(name: str, user: User) -> bool:
    """Whether another user has this name, or one that looks like it."""
    skeleton = confusable_names.skeleton(name)
    if Profile.objects.filter(skeleton=skeleton).exclude(user=user).exists():
        return True
    other_people = get_user_model()._default_manager.exclude(pk=user.pk)
    names = other_people.values_list("username", flat=True)
    return any(confusable_names.skeleton(username) == skeleton for username in names.iterator())


def taken_skeletons() -> set[str]:
    """Return what all usernames and display names look like."""
    usernames = get_user_model()._default_manager.values_list("username", flat=True)
    skeletons = {confusable_names.skeleton(username) for username in usernames.iterator()}
    saved = Profile.objects.exclude(skeleton="").values_list("skeleton", flat=True)
    return skeletons | set(saved)


class ProfileMiddleware:
    """Applies a user's language, time zone and date format to what a view renders."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._call_async(request)
        language = translation.get_language()
        try:
            return _with_language(self.get_response(request))
        finally:
            _restore(language)

    async def _call_async(self, request: HttpRequest) -> Any:
        language = translation.get_language()
        try:
            return _with_language(await self.get_response(request))
        finally:
            _restore(language)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        # Only here, because the view before it has read the user already.
        user = request.user
        preferences.of_user(user, request.COOKIES).activate()
        if not user.is_authenticated or of_user(user).time_zone:
            return
        if zone := preferences.browser_zone(request.COOKIES):
            try:
                save_setting(user, time_zone=zone)
            except OperationalError as error:  # it must not affect the page
                logger.warning("Can't save the time zone of a user: %s", error)


def _with_language(response: HttpResponse) -> HttpResponse:
    response.headers.setdefault("Content-Language", translation.get_language())
    return response


def _restore(language: str) -> None:
    preferences.deactivate()
    translation.activate(language)
