"""Events of runs and limits for the webhooks that chose them, and the results of triggers.

A run's process announces them as soon as it ends or waits. Should that process die before, a
job that looks at all recent runs does: each event has a key, so it is sent once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Q
from django.utils import timezone

from agents.db import database
from agents.db.periodic import last_result, periodic
from agents.db.row_cache import RowCache
from agents.insight.problems.models import Problem, ProblemChange
from agents.metering import budgets
from agents.metering.budgets import BudgetState
from agents.metering.budgets.limits import saved_limits
from agents.models import Approval, GuardrailHit, Run
from agents.models.installation import Quota
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX, RunQuerySet
from agents.web.workflows import automatic

from . import answers, delivery, messages
from .messages import Message
from .models import RUN_EVENTS, AlertChannel, Event

JOB = "webhook events"
# A run that ended just before the last look may have been saved just after it.
OVERLAP = timedelta(minutes=2)
MAX_AGE = timedelta(days=1)
# From this share of a limit on, its webhooks are warned once per window.
WARNING_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a webhook wants to know; without an owner or an agent, of all of them."""

    channel: int
    owner: int | None
    agent: int | None
    events: frozenset[str]
    changed_at: datetime

    def concerns(self, user: int | None, agent: int | None) -> bool:
        return self.owner in (None, user) and self.agent in (None, agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Something that happened in a run, once; its message depends on who gets it."""

    event: str
    key: str
    at: datetime | None
    build: Callable[[AlertChannel], Message]


def _load() -> tuple[Subscription, ...]:
    rows = AlertChannel.objects.filter(enabled=True, kind=AlertChannel.Kind.WEBHOOK)
    return tuple(
        Subscription(
            channel=row.pk,
            owner=row.owner_id,
            agent=row.agent_id,
            events=frozenset(row.events),
            changed_at=row.changed_at,
        )
        for row in rows.exclude(events=[])
    )


ROWS: RowCache[tuple[Subscription, ...]] = RowCache(AlertChannel, _load, tuple)


async def announce(run: Run) -> None:
    """Have sent what happened in a run that has ended or waits; usually nobody asked."""
    wanted = any(row.concerns(run.user_id, run.agent_id) for row in ROWS.get())
    if wanted or automatic.is_automatic(run.topic):
        await database.run(publish, Run.objects.filter(pk=run.pk))


def publish(runs: RunQuerySet, *, is_late: bool = False) -> None:
    """Save the deliveries for these runs that aren't saved yet.

    `is_late` leaves out what happened before a webhook was made or changed.
    """
    subscriptions = [row for row in ROWS.get() if row.events & {*RUN_EVENTS}]
    enabled = AlertChannel.objects.filter(enabled=True)
    enabled = enabled.filter(Q(owner=None) | Q(owner__is_active=True))
    chosen = enabled.select_related("owner__profile")
    channels = chosen.in_bulk([row.channel for row in subscriptions])
    drafts = Q(topic__startswith=DRAFT_TOPIC_PREFIX)
    for run in runs.listed().exclude(drafts).select_related("user"):
        result_channel = _publish_result(run) if automatic.is_automatic(run.topic) else None
        concerned = [
            row
            for row in subscriptions
            if row.channel in channels and row.concerns(run.user_id, run.agent_id)
        ]
        events = list(_events_of(run)) if concerned else []
        for subscription in concerned:
            channel = channels[subscription.channel]
            for event in events:
                is_old = is_late and (event.at is None or event.at < subscription.changed_at)
                is_result = event.event == Event.RUN_FINISHED and channel.pk == result_channel
                if event.event in subscription.events and not (is_old or is_result):
                    build = _for_all(partial(event.build, channel))
                    delivery.enqueue(channel, build, run=run, key=event.key)


def _events_of(run: Run) -> Iterator[RunEvent]:
    if run.status not in Run.LIVE:
        yield RunEvent(
            event=Event.RUN_FINISHED,
            key=f"{answers.RUN_KEY}{run.pk}",
            at=run.ended_at,
            build=lambda channel: messages.run_message(run, channel.base_url),
        )
    # A call that the asking program makes itself is nobody's to approve.
    for approval in run.approvals.waiting().exclude(why=Approval.Why.CLIENT):
        approval.run = run
        yield RunEvent(
            event=Event.APPROVAL_WAITING,
            key=f"approval:{approval.pk}",
            at=approval.asked_at,
            build=partial(_approval_message, approval),
        )
    for hit in run.hits.filter(is_observed=False):
        hit.run = run
        yield RunEvent(
            event=Event.GUARDRAIL_HIT,
            key=f"hit:{hit.pk}",
            at=hit.at,
            build=partial(_hit_message, hit),
        )


def _approval_message(approval: Approval, channel: AlertChannel) -> Message:
    return messages.approval_message(approval, channel.base_url)


def _hit_message(hit: GuardrailHit, channel: AlertChannel) -> Message:
    is_of_installation = channel.owner_id is None
    return messages.hit_message(hit, channel.base_url, with_rule=is_of_installation)


def _publish_result(run: Run) -> int | None:
    """Have the answer sent to where its schedule or trigger says; return that channel."""
    origin = automatic.origin_of(run.topic)
    if origin is None or origin.result_channel_id is None or run.status in Run.LIVE:
        return None
    usable = AlertChannel.objects.usable_by(origin.user).select_related("owner__profile")
    target = usable.filter(pk=origin.result_channel_id).first()
    if target is None:
        return None
    build = _for_all(partial(messages.run_message, run, target.base_url))
    delivery.enqueue(target, build, run=run, key=f"{answers.RESULT_KEY}{run.pk}")
    return target.pk


def _for_all(build: Callable[[], Message]) -> delivery.Builder:
    """Return a builder of a message that is the same for each recipient."""
    return lambda _person: build()


def publish_problem(problem: Problem, change: ProblemChange, event: str) -> int:
    """Have a new or reopened problem sent to webhooks of the installation; return how many."""
    wanted = [
        row.channel
        for row in ROWS.get()
        if Event.PROBLEM_OPENED in row.events and row.concerns(None, problem.agent_id)
    ]
    count = 0
    for channel in AlertChannel.objects.of_installation().filter(pk__in=wanted, enabled=True):
        message = messages.problem_message(event, problem, change, channel.base_url)
        build = _for_all(partial(replace, message, event=Event.PROBLEM_OPENED))
        count += delivery.enqueue(channel, build, problem, key=f"problem:{change.pk}")
    return count


def _is_anything_wanted() -> bool:
    return bool(ROWS.get()) or automatic.has_results()


@periodic(JOB, every=60, delay=30, once=True, when=_is_anything_wanted)
def catch_up(current_time: datetime | None = None) -> dict[str, str]:
    """Look for what no process has announced, since the last time."""
    current_time = current_time or timezone.now()
    last = last_result(JOB).get("until")
    since = datetime.fromisoformat(last) if last else current_time
    since = max(since - OVERLAP, current_time - MAX_AGE)
    finished = [status for status in Run.Status.values if status not in Run.LIVE]
    asked = Approval.objects.waiting().filter(asked_at__gte=since)
    publish(Run.objects.filter(status__in=finished, ended_at__gte=since), is_late=True)
    publish(Run.objects.waiting().filter(pk__in=asked.values("run")), is_late=True)
    return {"until": current_time.isoformat()}


def _may_warn() -> bool:
    return budgets.is_any_set() and any(
        Event.BUDGET_WARNING in row.events for row in ROWS.get()
    )


@periodic("limit warnings", every=60, delay=40, once=True, when=_may_warn)
def warn_of_limits() -> None:
    """Warn of limits of which little is left: shared ones, and those of the webhook's owner."""
    wanted = [row for row in ROWS.get() if Event.BUDGET_WARNING in row.events]
    channels = AlertChannel.objects.filter(enabled=True).in_bulk(
        [row.channel for row in wanted]
    )
    shared = budgets.read_limits(saved_limits())
    for subscription in wanted:
        channel = channels.get(subscription.channel)
        if channel is None:
            continue
        owner = subscription.owner
        states = shared if owner is None else _own_limits(owner)
        for state in states:
            limit = state.limit
            is_chosen = subscription.agent is None or (
                limit.kind == "agent" and limit.pk == subscription.agent
            )
            is_short = limit.window == Quota.Window.MINUTE
            if is_chosen and not is_short and limit.amount and state.share >= WARNING_SHARE:
                ends = int(state.resets_at.timestamp())
                key = f"limit:{limit.scope}:{limit.measure}:{limit.window}:{ends}"
                build = _for_all(partial(messages.limit_message, state, channel.base_url))
                delivery.enqueue(channel, build, key=key)


def _own_limits(user: int) -> list[BudgetState]:
    """Return a user's own limits, without those that they share with others."""
    return [state for state in budgets.read(user) if state.limit.kind == "user"]
