"""Rules: which changes of problems are announced, and where."""

from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.db import claims
from agents.db.periodic import periodic
from agents.insight.problems.models import Problem, ProblemChange

from . import delivery, webhook_events
from .messages import Message, problem_message
from .models import AlertChannel, AlertRule, Event, QuietPeriod

Action = ProblemChange.Action
EVENTS: dict[str, Event] = {
    Action.FOUND: Event.NEW,
    Action.REOPENED: Event.REOPENED,
    Action.SPIKED: Event.SPIKING,
}
OPENED = {Event.NEW, Event.REOPENED}
BATCH = 100
# After a long standstill old news would only be noise.
MAX_AGE = timedelta(days=1)


# Late enough that the problems of the same minute are grouped before.
@periodic("alerts", every=60, delay=20, once=True)
def announce(current_time: datetime | None = None) -> int:
    """Announce new changes by the rules; return how many messages were created."""
    current_time = current_time or timezone.now()
    unannounced = ProblemChange.objects.filter(is_announced=False).order_by("pk")
    count = 0
    while changes := list(unannounced[:BATCH]):
        count += sum(_announce(change, current_time) for change in changes)
        if len(changes) < BATCH:
            break
    return count


@transaction.atomic
def _announce(change: ProblemChange, current_time: datetime) -> int:
    """Announce a change; only one process can claim it."""
    if (
        not claims.compare_and_set(change, "is_announced", True)
        or change.at < current_time - MAX_AGE
    ):
        return 0
    event = EVENTS.get(change.action)
    problem = Problem.objects.select_for_update().get(pk=change.problem_id)
    if event is None or problem.status != Problem.Status.OPEN:
        return 0
    # One query for this agent's rules and those for all: with two, a rule whose only agent is
    # deleted in between would look like one for all.
    concerned = Q(agents=None)
    if problem.agent_id is not None:
        concerned |= Q(agents=problem.agent_id)
    count = 0
    for rule in AlertRule.objects.filter(concerned, enabled=True, event=event):
        if _claim_quiet_period(rule, problem, current_time):
            for channel in rule.channels.filter(enabled=True):
                build = partial(_build, event, problem, change, channel)
                count += delivery.enqueue(channel, build, problem)
    if event in OPENED:
        count += webhook_events.publish_problem(problem, change, event)
    return count


def _build(
    event: str,
    problem: Problem,
    change: ProblemChange,
    channel: AlertChannel,
    person: User | None,
) -> Message:
    return problem_message(event, problem, change, channel.base_url)


def _claim_quiet_period(rule: AlertRule, problem: Problem, current_time: datetime) -> bool:
    """Start a quiet period; return False within one. The problem's row is locked."""
    latest_start = current_time - timedelta(minutes=rule.quiet_minutes)
    quiet_period, is_new = QuietPeriod.objects.get_or_create(
        {"announced_at": current_time}, rule=rule, problem=problem
    )
    if is_new or quiet_period.announced_at > latest_start:
        return is_new
    return claims.compare_and_set(quiet_period, "announced_at", current_time)
