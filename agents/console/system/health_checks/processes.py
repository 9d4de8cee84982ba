"""Checks of the processes: heartbeat, event writer, event loops and sockets."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import ServerProcess

from .check import HealthCheck, format_number

MAX_SILENCE = timedelta(seconds=20)
MAX_LAG_SECONDS = 2.0
MAX_LATENESS_SECONDS = 0.25
MAX_STALL_SECONDS = 1.0
MAX_STALLS = 10
RECENT_STALL = timedelta(hours=1)

Processes = Sequence[ServerProcess]


def check_processes(processes: Processes) -> HealthCheck:
    name = _("Processes")
    if not processes:
        advice = _("Start one with “manage.py serve”.")
        status = _("No heartbeat from any process.")
        return HealthCheck(name=name, status=status, advice=advice)
    kinds = Counter(process.get_kind_display() for process in processes)
    status = _(", ").join(
        _("%(count)d %(kind)s") % {"count": count, "kind": kind}
        for kind, count in kinds.items()
    )
    advice = ""
    silent = [process.short_name for process in processes if process.silence > MAX_SILENCE]
    if silent:
        sentence = _("No heartbeat from %(names)s. The process has crashed or is stuck.")
        advice = sentence % {"names": ", ".join(silent)}
    elif len({process.version for process in processes}) > 1:
        advice = _("The processes run different versions. Restart the older ones.")
    return HealthCheck(name=name, status=status, advice=advice)


def check_event_writer(processes: Processes) -> HealthCheck:
    lag = max((process.journal_lag for process in processes), default=0.0)
    status = _("No recent events.")
    if lag:
        status = _("Events are saved within %(seconds)s s.") % {"seconds": format_number(lag)}
    advice = ""
    if lag > MAX_LAG_SECONDS:
        advice = _("The database is slow or overloaded. Check its load.")
    return HealthCheck(name=_("Event storage"), status=status, advice=advice)


def check_event_loops(processes: Processes) -> HealthCheck:
    name = _("Event loops")
    count = sum(process.stalls for process in processes)
    if not count:
        return HealthCheck(name=name, status=_("Never blocked."))
    worst = max(processes, key=lambda process: process.longest_stall)
    status = ngettext(
        "Event loop blocked %(count)d time (%(seconds)s s).",
        "Event loop blocked %(count)d times (longest: %(seconds)s s).",
        count,
    )
    status %= {"count": count, "seconds": format_number(worst.longest_stall)}
    return HealthCheck(name=name, status=status, advice=_event_loop_advice(processes, worst))


def _event_loop_advice(processes: Processes, worst: ServerProcess) -> str:
    late = [p.short_name for p in processes if p.lateness > MAX_LATENESS_SECONDS]
    if late:
        return _("Blocked right now: %(names)s.") % {"names": ", ".join(late)}
    is_lately = any(p.stalled_at and p.now - p.stalled_at < RECENT_STALL for p in processes)
    is_much = worst.longest_stall > MAX_STALL_SECONDS or worst.stalls > MAX_STALLS
    if not is_lately or not is_much:
        return ""
    if not worst.stalled_in:
        return _("Also blocked in the last hour. The machine is overloaded.")
    sentence = _("Also blocked in the last hour. The longest block was in %(where)s.")
    return sentence % {"where": worst.stalled_in.partition(" ")[0]}


def check_sockets(processes: Processes) -> HealthCheck:
    count = sum(process.sockets for process in processes)
    status = ngettext("%(count)d page connected.", "%(count)d pages connected.", count)
    return HealthCheck(name=_("WebSockets"), status=status % {"count": count})
