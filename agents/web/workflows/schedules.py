"""Schedules of workflows and agents: the first process that finds one due starts it, once."""

import logging
from datetime import datetime

from cronsim import CronSim, CronSimError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents import runs
from agents.db import claims, database
from agents.db.compiled_queries import compiled_query
from agents.db.periodic import periodic
from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.models import Run, Schedule

from . import acceptance, automatic, start

logger = logging.getLogger(__name__)

TOPIC_PREFIX = automatic.SCHEDULE_PREFIX


class InvalidCron(ValueError):
    """Raised for an invalid schedule; the message says why."""


def next_time(cron: str, moment: datetime) -> datetime:
    """Return the next time, in the installation's time zone; raise InvalidCron."""
    try:
        return next(CronSim(cron, timezone.localtime(moment, timezone.get_default_timezone())))
    except CronSimError as error:
        raise InvalidCron(_("Invalid cron expression: %(why)s.") % {"why": error}) from error
    except StopIteration:
        raise InvalidCron(_("This cron expression never matches a date.")) from None


@periodic("schedules", every=5)
async def launch_due() -> None:
    for run in await database.run(start_due, timezone.now()):
        runs.launch(run)


def start_due(current_time: datetime) -> list[Run]:
    """Create the runs that are due; missed ones are made up for once."""
    if all(next_at is not None and next_at > current_time for next_at in _next_times()):
        return []
    is_startable = Q(workflow=None) | Q(workflow__enabled=True)
    due = Schedule.objects.filter(is_startable, enabled=True, next_at__lte=current_time)
    new_schedules = Schedule.objects.filter(enabled=True, next_at=None, trouble="")
    for schedule in new_schedules:
        _claim(schedule, current_time)
    started = []
    for schedule in due.select_related("workflow", "agent", "user"):
        try:
            started.append(_start_schedule(schedule, current_time))
        except Exception:  # others must not wait for a failure
            logger.exception("Can't start schedule %s.", schedule.pk)
    return [run for run in started if run is not None]


@compiled_query
def _next_times() -> QuerySet[Schedule, datetime | None]:
    """Return when schedules are due; None for new ones."""
    with_time = Schedule.objects.filter(~Q(next_at=None) | Q(trouble=""), enabled=True)
    return with_time.values_list("next_at", flat=True)


def _start_schedule(schedule: Schedule, current_time: datetime) -> Run | None:
    """Create the run and set the next time; None if another process was faster."""
    previous = Run.objects.live().filter(topic=f"{TOPIC_PREFIX}{schedule.pk}").first()
    try:
        if previous is not None:
            raise runs.RunInProgress
        with transaction.atomic():
            if not _claim(schedule, current_time, last_run_at=current_time):
                return None
            version = acceptance.newest_version(schedule)
            if why_held := acceptance.why_held(schedule, version):
                raise start.WorkflowNotStarted(why_held)
            return automatic.prepare(schedule, f"{TOPIC_PREFIX}{schedule.pk}", version=version)
    except runs.RunInProgress:
        sentence = _("The previous run hasn't finished yet.")
        if previous is not None and previous.is_waiting:
            sentence = _("Run %(run)s is waiting for a user.") % {"run": previous.pk}
        if schedule.overlap == Schedule.Overlap.WAIT:  # it stays due
            Schedule.objects.filter(pk=schedule.pk).update(trouble=sentence)
        else:
            logger.warning("Schedule %s is skipped: %s", schedule.pk, sentence)
            _claim(schedule, current_time, trouble=sentence)
        return None
    except (start.WorkflowNotStarted, AgentError) as reason:
        sentence = translate(str(reason))
        logger.warning("Schedule %s wasn't started: %s", schedule.pk, sentence)
        _claim(schedule, current_time, trouble=sentence)
        return None


def _claim(schedule: Schedule, current_time: datetime, **facts: object) -> bool:
    """Claim the schedule; return False if another process was faster."""
    try:
        upcoming = next_time(schedule.cron, current_time)
    except InvalidCron as error:
        return claims.compare_and_set(schedule, "next_at", None, trouble=str(error))
    return claims.compare_and_set(schedule, "next_at", upcoming, **{"trouble": "", **facts})
