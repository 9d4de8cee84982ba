"""Checks of the runs: running, queued, waiting for approval, failed and recovered."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import Approval, Run, ServerProcess

from .check import HealthCheck, format_duration
from .processes import Processes

RECENT_PERIOD = timedelta(hours=1)
MAX_QUEUE_WAIT = timedelta(seconds=30)
MIN_RUNS_PER_FAILURE = 10


def check_runs() -> HealthCheck:
    count = Run.objects.running().count()
    status = ngettext("%(count)d running.", "%(count)d running.", count) % {"count": count}
    return HealthCheck(name=_("Runs"), status=status, page=_trace_list_url("running"))


def queue_depth() -> int | None:
    """Return how many runs wait for a worker; None without workers."""
    return Run.objects.queued().count() if settings.WORKERS else None


def check_queue(processes: Processes) -> Iterator[HealthCheck]:
    if (depth := queue_depth()) is None:
        return
    first = Run.objects.queued().order_by("started_at").first()
    waited = timezone.now() - first.started_at if first else timedelta()
    status = _("The queue is empty.")
    if first:
        sentence = ngettext(
            "%(count)d run waiting for %(time)s.",
            "%(count)d runs waiting, the oldest for %(time)s.",
            depth,
        )
        status = sentence % {"count": depth, "time": format_duration(waited)}
    advice = ""
    if not any(process.kind == ServerProcess.Kind.WORKER for process in processes):
        advice = _("No worker is running. Start one with “manage.py worker”.")
    elif waited > MAX_QUEUE_WAIT:
        advice = _("The workers can't keep up. Start another one.")
    yield HealthCheck(name=_("Queue"), status=status, advice=advice)


def check_approvals() -> HealthCheck:
    """Check pending approvals; slow decisions aren't a fault."""
    name = _("Pending approvals")
    waiting = Approval.objects.waiting().order_by("asked_at")
    count = waiting.count()
    first = waiting.first()
    if first is None:
        return HealthCheck(name=name, status=_("Nothing to approve."))
    status = ngettext(
        "%(count)d approval pending for %(time)s.",
        "%(count)d approvals pending, the oldest for %(time)s.",
        count,
    )
    status %= {"count": count, "time": format_duration(timezone.now() - first.asked_at)}
    return HealthCheck(name=name, status=status, page=_trace_list_url("waiting"))


def check_failures() -> HealthCheck:
    executed = Run.objects.executed().without_experiments()
    ended = executed.filter(ended_at__gt=timezone.now() - RECENT_PERIOD)
    failed = ended.filter(status=Run.Status.FAILED).count()
    count = ended.count()
    status = _("%(failed)d of %(count)d in the last hour.") % {"failed": failed, "count": count}
    advice = ""
    if failed * MIN_RUNS_PER_FAILURE > count:
        advice = _("Check the errors of these runs, then test their models and tools.")
    return HealthCheck(
        name=_("Failed runs"), status=status, advice=advice, page=_trace_list_url("failed")
    )


def check_takeovers() -> HealthCheck:
    recent = Q(ended_at__gt=timezone.now() - RECENT_PERIOD) | Q(status=Run.Status.RUNNING)
    count = Run.objects.filter(recent, takeovers__gt=0).count()
    status = _("%(count)d in the last hour.") % {"count": count}
    advice = _("A process stopped unexpectedly. Check its log.") if count else ""
    return HealthCheck(name=_("Recovered runs"), status=status, advice=advice)


def _trace_list_url(status: str) -> str:
    return f"{reverse('trace:list')}?status={status}"
