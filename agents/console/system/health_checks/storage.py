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
from agents.knowledge.files import folder_identity
from agents.models import PeriodicJob
from agents.web.asgi import health

from .check import HealthCheck, format_duration, format_number

MAX_UPKEEP_AGE = timedelta(days=2)
DATABASE_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def check_database() -> HealthCheck:
    kind = DATABASE_NAMES.get(connection.vendor, connection.vendor)
    version = ".".join(map(str, connection.get_database_version()))
    query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    if connection.vendor == "postgresql":
        query = "SELECT pg_database_size(current_database())"
    with connection.cursor() as cursor:
        cursor.execute(query)
        [size] = cursor.fetchone()
    return HealthCheck(name=_("Database"), status=f"{kind} {version}, {filesizeformat(size)}")


def check_channel_layer() -> HealthCheck:
    name = _("Channel layer")
    kind = type(get_channel_layer()).__name__
    if (delay := async_to_sync(health.layer_latency)()) is None:
        status = _("%(kind)s isn't responding.") % {"kind": kind}
        advice = _("Pages update only every few seconds. Check that Redis is running.")
        return HealthCheck(name=name, status=status, advice=advice)
    params = {"kind": kind, "time": format_number(delay * 1000)}
    return HealthCheck(name=name, status=_("%(kind)s responds in %(time)s ms.") % params)


def check_disk() -> HealthCheck:
    free_bytes = health.free_bytes()
    advice = ""
    if free_bytes < health.MIN_FREE_BYTES:
        advice = _("Disk is almost full. Free up space, or new messages can't be saved.")
    status = _("%(size)s free.") % {"size": filesizeformat(free_bytes)}
    return HealthCheck(name=_("Disk"), status=status, advice=advice)


def check_data_folder() -> HealthCheck:
    name = _("Data folder")
    folder = settings.DATA_DIR
    if problem := folder_identity.find_problem():
        return HealthCheck(name=name, status=str(folder), advice=problem)
    if not data_folder.is_exposed(folder):
        return HealthCheck(name=name, status=_("Only this server's user can read it."))
    status = _("Other users on this machine can read %(folder)s.")
    advice = _("It contains the secret key and the database. Run: chmod 700 %(folder)s")
    params = {"folder": folder}
    return HealthCheck(name=name, status=status % params, advice=advice % params)


def check_retention() -> HealthCheck:
    """Check the daily deletion of expired data."""
    name = _("Retention")
    row = PeriodicJob.objects.filter(name="prune").first()
    if row is None or row.started_at is None:
        return HealthCheck(name=name, status=_("Cleanup hasn't run yet."))
    counts = {name: row.result.get(name, 0) for name in ("sessions", "runs", "entries")}
    deleted = _("%(sessions)d chats, %(runs)d runs and %(entries)d audit log entries") % counts
    age = timezone.now() - row.started_at
    params = {"time": format_duration(age), "what": deleted}
    status = _("Deleted %(time)s ago: %(what)s.") % params
    late = _("Cleanup should run once a day. Check the server log for the error.")
    return HealthCheck(name=name, status=status, advice=late if age > MAX_UPKEEP_AGE else "")
