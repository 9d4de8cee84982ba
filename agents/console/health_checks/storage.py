"""Checks of what the server stores and how pages hear of it."""

from datetime import timedelta

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import connection
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.db import data_folder
from agents.files import folder_identity
from agents.models import PeriodicJob
from agents.web import health

from .check import HealthCheck, format_duration, format_number

MAX_UPKEEP_AGE = timedelta(days=2)
DATABASE_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def check_database() -> HealthCheck:
    kind = DATABASE_NAMES.get(connection.vendor, connection.vendor)
    version = ".".join(map(str, connection.get_database_version()))
    now = f"{kind} {version}, {filesizeformat(_database_size())}"
    return HealthCheck(what=_("Database"), now=now)


def _database_size() -> int:
    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    if connection.vendor == "postgresql":
        size = "SELECT pg_database_size(current_database())"
    with connection.cursor() as cursor:
        cursor.execute(size)
        return cursor.fetchone()[0]


def check_channel_layer() -> HealthCheck:
    what, kind = _("Channel layer"), type(get_channel_layer()).__name__
    if (delay := async_to_sync(health.layer_latency)()) is None:
        now = _("%(kind)s isn't responding.") % {"kind": kind}
        advice = _("Pages update only every few seconds. Check that Redis is running.")
        return HealthCheck(what=what, now=now, advice=advice)
    now = _("%(kind)s responds in %(time)s ms.")
    return HealthCheck(what=what, now=now % {"kind": kind, "time": format_number(delay * 1000)})


def check_disk() -> HealthCheck:
    left = health.free_bytes()
    advice = (
        _("Disk is almost full. Free up space, or new messages can't be saved.")
        if left < health.MIN_FREE_BYTES
        else ""
    )
    now = _("%(size)s free.") % {"size": filesizeformat(left)}
    return HealthCheck(what=_("Disk"), now=now, advice=advice)


def check_data_folder() -> HealthCheck:
    what, folder = _("Data folder"), {"folder": settings.DATA_DIR}
    if problem := folder_identity.find_problem():
        return HealthCheck(what=what, now=str(settings.DATA_DIR), advice=problem)
    if not data_folder.is_exposed(settings.DATA_DIR):
        return HealthCheck(what=what, now=_("Only this server's user can read it."))
    now = _("Other users on this machine can read %(folder)s.") % folder
    advice = (
        _("It contains the secret key and the database. Run: chmod 700 %(folder)s") % folder
    )
    return HealthCheck(what=what, now=now, advice=advice)


def check_retention() -> HealthCheck:
    """Check the daily deletion of expired data."""
    what, row = _("Retention"), PeriodicJob.objects.filter(name="prune").first()
    if row is None or row.started_at is None:
        return HealthCheck(what=what, now=_("Cleanup hasn't run yet."))
    counts = {name: row.result.get(name, 0) for name in ("sessions", "runs", "entries")}
    deleted = _("%(sessions)d chats, %(runs)d runs and %(entries)d audit log entries") % counts
    age = timezone.now() - row.started_at
    now = _("Deleted %(time)s ago: %(what)s.") % {"time": format_duration(age), "what": deleted}
    late = _("Cleanup should run once a day. Check the server log for the error.")
    return HealthCheck(what=what, now=now, advice=late if age > MAX_UPKEEP_AGE else "")
