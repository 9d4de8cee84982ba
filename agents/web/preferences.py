"""How pages and sockets show texts and dates to their user: language, time zone, date style.

A profile has the user's choices. Until a time zone is saved there, the browser's is used, which
pages send as a cookie. Workers and commands use the installation's settings.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.utils import timezone, translation

from agents.models.types import AnyUser

from .presentation.formats import dates

ZONE_COOKIE = "ashiato_zone"
HALF_DAY = "12"


@dataclass(frozen=True, slots=True)
class Preferences:
    language: str | None = None  # None: the active one
    time_zone: str = ""  # empty: the installation's
    date_style: dates.DateStyle = dates.DEFAULT_STYLE

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Show everything rendered within this context as the user wants it."""
        zone = ZoneInfo(self.time_zone) if self.time_zone else None
        with timezone.override(zone), dates.override(self.date_style):
            if self.language is None:
                yield
            else:
                with translation.override(self.language):
                    yield

    def activate(self) -> None:
        """Apply them to the rest of a request."""
        if self.time_zone:
            timezone.activate(ZoneInfo(self.time_zone))
        dates.activate(self.date_style)
        if self.language:
            translation.activate(self.language)


def deactivate() -> None:
    """Return to the installation's settings, since threads are used again."""
    timezone.deactivate()
    dates.activate(dates.DEFAULT_STYLE)


def of_user(user: AnyUser, cookies: Mapping[str, str]) -> Preferences:
    """Return a user's preferences; what isn't set comes from the browser."""
    profile = getattr(user, "profile", None)
    zone = (profile.time_zone if profile else "") or browser_zone(cookies)
    if profile is None:
        return Preferences(time_zone=zone)
    style = dates.DateStyle(profile.date_format, profile.clock == HALF_DAY)
    return Preferences(profile.language or None, zone, style)


def browser_zone(cookies: Mapping[str, str]) -> str:
    """Return the browser's time zone, if it sent a valid one."""
    name = cookies.get(ZONE_COOKIE, "").replace("%2F", "/")
    return name if name in time_zones() else ""


@cache
def time_zones() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(available_timezones()) | {settings.TIME_ZONE}
