"""Rules: which changes of problems are announced, and where."""

from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from agents.problems.models import Problem, ProblemChange

from . import delivery
from .messages import Message, problem_message
from .models import AlertChannel, AlertRule, Event, QuietPeriod

Action = ProblemChange.Action
EVENTS: dict[str, Event] = {
    Action.FOUND: Event.NEW,
    Action.REOPENED: Event.REOPENED,
    Action.SPIKED: Event.SPIKING,
}
BATCH = 100
# After a long standstill old news would only be noise.
MAX_AGE = timedelta(days=1)


def announce(now: datetime | None = None) -> int:
    """Announce new changes by the rules; return how many messages were created."""
    now = now or timezone.now()
    unannounced = ProblemChange.objects.filter(is_announced=False).order_by("pk")
    count = 0
    while changes := list(unannounced[:BATCH]):
        count += sum(_announce(change, now) for change in changes)
        if len(changes) < BATCH:
            break
    return count


@transaction.atomic
def _announce(change: ProblemChange, now: datetime) -> int:
    """Announce a change; only one process can claim it."""
    same = ProblemChange.objects.filter(pk=change.pk, is_announced=False)
    if not same.update(is_announced=True) or change.at < now - MAX_AGE:
        return 0
    event = EVENTS.get(change.action)
    problem = Problem.objects.select_for_update().get(pk=change.problem_id)
    if event is None or problem.status != Problem.Status.OPEN:
        return 0
    count = 0
    for rule in _rules(event, problem):
        if _claim_quiet_period(rule, problem, now):
            for channel in rule.channels.filter(enabled=True):
                build = partial(_build, event, problem, change, channel)
                count += delivery.enqueue(channel, build, problem)
    return count


def _build(
    event: str,
    problem: Problem,
    change: ProblemChange,
    channel: AlertChannel,
    person: User | None,
) -> Message:
    return problem_message(event, problem, change, channel.base_url)


def _rules(event: str, problem: Problem) -> QuerySet[AlertRule]:
    """Return the rules for this agent or for all, in one query.

    With two, a rule whose only agent is deleted in between would look like one for all.
    """
    concerned = Q(agents=None)
    if problem.agent_id is not None:
        concerned |= Q(agents=problem.agent_id)
    return AlertRule.objects.filter(concerned, enabled=True, event=event)


def _claim_quiet_period(rule: AlertRule, problem: Problem, now: datetime) -> bool:
    """Start a quiet period; return False within one. The problem's row is locked."""
    latest_start = now - timedelta(minutes=rule.quiet_minutes)
    quiet_period, is_new = QuietPeriod.objects.get_or_create(
        {"announced_at": now}, rule=rule, problem=problem
    )
    if is_new:
        return True
    ended = QuietPeriod.objects.filter(pk=quiet_period.pk, announced_at__lte=latest_start)
    return ended.update(announced_at=now) == 1
