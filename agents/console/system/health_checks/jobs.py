"""Whether the periodic jobs, which one process does for all, run and succeed."""

from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.db import periodic
from agents.models import PeriodicJob

from .check import HealthCheck, format_duration

# Beyond its interval: a job may take long, and a server may have just started.
MAX_DELAY = timedelta(hours=1)


def check_periodic_jobs() -> HealthCheck:
    name = _("Periodic jobs")
    current_time = timezone.now()
    rows = PeriodicJob.objects.filter(name__in=periodic.jobs).exclude(started_at=None)
    last_starts = {row.name: row.started_at for row in rows if row.started_at is not None}
    if not last_starts:
        return HealthCheck(name=name, status=_("None has run yet."))
    age = current_time - max(last_starts.values())
    status = ngettext(
        "%(count)d job; the last one started %(time)s ago.",
        "%(count)d jobs; the last one started %(time)s ago.",
        len(last_starts),
    ) % {"count": len(last_starts), "time": format_duration(age)}
    failed = [row.name for row in rows if row.problem]
    late = []
    for job_name, started_at in last_starts.items():
        job = periodic.jobs[job_name]
        max_age = timedelta(seconds=job.every) + MAX_DELAY
        # With a condition, there may have been nothing to do.
        if job.when is None and current_time - started_at > max_age:
            late.append(job_name)
    advice = ""
    if failed:
        advice = _("Failed: %(names)s. Check the server log for the error.") % {
            "names": ", ".join(failed)
        }
    elif late:
        advice = _("Late: %(names)s. Check that a server process is running.") % {
            "names": ", ".join(late)
        }
    return HealthCheck(name=name, status=status, advice=advice)
