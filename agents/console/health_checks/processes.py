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
MAX_STALL_SECONDS, MAX_STALLS = 1.0, 10
RECENT_STALL = timedelta(hours=1)

Processes = Sequence[ServerProcess]


def check_processes(processes: Processes) -> HealthCheck:
    what = _("Processes")
    if not processes:
        advice = _("Start one with “manage.py serve”.")
        return HealthCheck(what=what, now=_("No heartbeat from any process."), advice=advice)
    kinds = Counter(process.get_kind_display() for process in processes)
    now = _(", ").join(
        _("%(count)d %(kind)s") % {"count": count, "kind": kind}
        for kind, count in kinds.items()
    )
    return HealthCheck(what=what, now=now, advice=_process_advice(processes))


def _process_advice(processes: Processes) -> str:
    if silent := [process.short_name for process in processes if process.silence > MAX_SILENCE]:
        sentence = _("No heartbeat from %(names)s. The process has crashed or is stuck.")
        return sentence % {"names": ", ".join(silent)}
    if len({process.version for process in processes}) > 1:
        return _("The processes run different versions. Restart the older ones.")
    return ""


def check_event_writer(processes: Processes) -> HealthCheck:
    lag = max((process.journal_lag for process in processes), default=0.0)
    now = _("Events are saved within %(seconds)s s.") % {"seconds": format_number(lag)}
    now = now if lag else _("No recent events.")
    advice = (
        _("The database is slow or overloaded. Check its load.")
        if lag > MAX_LAG_SECONDS
        else ""
    )
    return HealthCheck(what=_("Event storage"), now=now, advice=advice)


def check_event_loops(processes: Processes) -> HealthCheck:
    what, count = _("Event loops"), sum(process.stalls for process in processes)
    if not count:
        return HealthCheck(what=what, now=_("Never blocked."))
    worst = max(processes, key=lambda process: process.longest_stall)
    now = ngettext(
        "Event loop blocked %(count)d time (%(seconds)s s).",
        "Event loop blocked %(count)d times (longest: %(seconds)s s).",
        count,
    )
    now %= {"count": count, "seconds": format_number(worst.longest_stall)}
    return HealthCheck(what=what, now=now, advice=_event_loop_advice(processes, worst))


def _event_loop_advice(processes: Processes, worst: ServerProcess) -> str:
    if late := [each.short_name for each in processes if each.lateness > MAX_LATENESS_SECONDS]:
        return _("Blocked right now: %(names)s.") % {"names": ", ".join(late)}
    is_lately = any(p.stalled_at and p.now - p.stalled_at < RECENT_STALL for p in processes)
    is_much = worst.longest_stall > MAX_STALL_SECONDS or worst.stalls > MAX_STALLS
    if not is_lately or not is_much:
        return ""
    if not worst.stalled_in:
        return _("Also blocked in the last hour. The machine is overloaded.")
    where = worst.stalled_in.partition(" ")[0]
    return _("Also blocked in the last hour. The longest block was in %(where)s.") % {
        "where": where
    }


def check_sockets(processes: Processes) -> HealthCheck:
    count = sum(process.sockets for process in processes)
    now = ngettext("%(count)d page connected.", "%(count)d pages connected.", count)
    return HealthCheck(what=_("WebSockets"), now=now % {"count": count})
