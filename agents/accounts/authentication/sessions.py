"""Sessions of users, and how they end: at once, in all open pages."""

import asyncio
import logging
import re
import time
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import runs
from agents.access.audit import request_context
from agents.db import database
from agents.models import Run
from agents.runs import pubsub

from ..models import Visit

logger = logging.getLogger(__name__)

LAST_SEEN_SECONDS = 60.0
MAX_CACHED_SESSIONS = 10_000
BROWSERS = {
    "Edg": "Edge",
    "OPR": "Opera",
    "SamsungBrowser": "Samsung Internet",
    "Firefox": "Firefox",
    "FxiOS": "Firefox",
    "CriOS": "Chrome",
    "Chrome": "Chrome",
    "Safari": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Macintosh": "macOS",
    "Linux": "Linux",
}


def start(request: HttpRequest, user: User, method: str) -> Visit:
    """Record a sign-in; a user who was signed in already keeps their session."""
    values = {
        "user": user,
        "way": method,
        "device": request.headers.get("User-Agent", "").replace("\0", "")[:300],
        "address": request_context.client_address(request),
    }
    key = str(request.session.session_key)
    return Visit.objects.update_or_create(session_id=key, defaults=values)[0]


def end(visits: QuerySet[Visit]) -> int:
    """End these sessions and notify their pages; return how many there were."""
    with transaction.atomic():
        user_ids = set(visits.order_by().values_list("user", flat=True))
        keys = list(visits.order_by().values_list("session", flat=True))
        Session.objects.filter(pk__in=keys).delete()
        for user_id in user_ids:
            recheck_access(user_id)
    return len(keys)


def recheck_access(user_id: int) -> None:
    """Make the user's pages check access again after the commit."""
    publish = partial(
        async_to_sync(pubsub.publish), pubsub.person_topic(user_id), pubsub.REFRESH_KIND
    )
    transaction.on_commit(publish)


def stop_runs(user: User) -> None:
    """Stop the live runs of a deactivated user."""
    async_to_sync(_stop_all)(list(Run.objects.live().filter(user=user)))


async def _stop_all(live_runs: list[Run]) -> None:
    await asyncio.gather(*map(runs.stop, live_runs))


def device_name(user_agent: str) -> str:
    """Return a short name of the browser and system."""
    browser = next((name for mark, name in BROWSERS.items() if f"{mark}/" in user_agent), "")
    system = next((name for mark, name in SYSTEMS.items() if re.search(mark, user_agent)), "")
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or _("unknown device")


class LastSeenMiddleware:
    """Records that a session is in use, at most once per minute."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        self.seen: dict[str, float] = {}
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._call_async(request)
        if (visit := self._due_visit(request)) is not None:
            _touch(visit)
        return self.get_response(request)

    async def _call_async(self, request: HttpRequest) -> Any:
        if (visit := self._due_visit(request)) is not None:
            await database.run(_touch, visit)
        return await self.get_response(request)

    def _due_visit(self, request: HttpRequest) -> QuerySet[Visit] | None:
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        seconds = time.monotonic()
        if not key or seconds - self.seen.get(key, -LAST_SEEN_SECONDS) < LAST_SEEN_SECONDS:
            return None
        if len(self.seen) >= MAX_CACHED_SESSIONS:
            self.seen.clear()
        self.seen[key] = seconds
        return Visit.objects.filter(session=key.replace("\0", ""))


def _touch(visit: QuerySet[Visit]) -> None:
    """Save the time; a failure must not affect the page."""
    try:
        visit.update(seen_at=timezone.now())
    except OperationalError as error:
        logger.warning("Can't save the last activity of a session: %s", error)
