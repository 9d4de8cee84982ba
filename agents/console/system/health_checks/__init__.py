"""Health checks: status of each part, and advice if something is wrong."""

from collections.abc import Callable, Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from .. import deployment_checks
from .check import HealthCheck, format_duration, format_number
from .jobs import check_periodic_jobs
from .processes import (
    MAX_SILENCE,
    Processes,
    check_event_loops,
    check_event_writer,
    check_processes,
    check_sockets,
)
from .runs import (
    check_approvals,
    check_failures,
    check_queue,
    check_runs,
    check_takeovers,
    queue_depth,
)
from .services import (
    check_circuits,
    check_connections,
    check_databases,
    check_mcp_servers,
    check_media,
    check_models,
    check_sandbox,
)
from .storage import (
    check_channel_layer,
    check_data_folder,
    check_database,
    check_disk,
    check_retention,
)

__all__ = [
    "MAX_SILENCE",
    "MORE_CHECKS",
    "HealthCheck",
    "all_checks",
    "check_circuits",
    "check_connections",
    "check_data_folder",
    "check_disk",
    "check_event_loops",
    "check_event_writer",
    "check_models",
    "check_processes",
    "check_queue",
    "format_duration",
    "format_number",
    "queue_depth",
]

# Checks of packages that this one can't import.
MORE_CHECKS: list[Callable[[], Iterator[HealthCheck]]] = []


def all_checks(processes: Processes) -> Iterator[HealthCheck]:
    yield check_processes(processes)
    yield check_runs()
    yield from check_queue(processes)
    yield check_approvals()
    yield check_failures()
    yield check_takeovers()
    yield check_event_writer(processes)
    yield check_event_loops(processes)
    yield check_sockets(processes)
    yield check_database()
    yield check_channel_layer()
    yield check_disk()
    yield check_data_folder()
    yield check_models()
    yield check_circuits()
    yield check_mcp_servers(processes)
    yield check_databases()
    yield check_sandbox()
    yield check_media()
    yield check_periodic_jobs()
    yield check_retention()
    for check in MORE_CHECKS:
        yield from check()
    yield check_settings()


def check_settings() -> HealthCheck:
    name = _("Settings")
    count = sum(bool(remark.advice) for remark in deployment_checks.deploy_warnings())
    if not count:
        return HealthCheck(name=name, status=_("No problems found."))
    status = ngettext(
        "“check --deploy” found %(count)d problem.",
        "“check --deploy” found %(count)d problems.",
        count,
    )
    advice = _("See the list below for how to fix them.")
    return HealthCheck(name=name, status=status % {"count": count}, advice=advice)
