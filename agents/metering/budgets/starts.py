"""Limits where a message is sent and where a run starts."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.access import api_keys
from agents.db.installation import configured
from agents.engine.errors import QuotaExceeded
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import plural_sentence as ngettext
from agents.models import Agent, Run

from . import counters, limits, refusals
from .holds import groups_of
from .limits import Limit
from .measures import HELD, Measure
from .payers import Payer, payer_of
from .windows import window_end

RUN_MEASURES = (Measure.RUNS, *HELD)


def lock_user(user: User) -> None:
    """Lock the user's row, so that concurrent runs and messages are counted one by one."""
    if not connection.features.has_select_for_update:
        return  # SQLite has one writer at a time
    users = get_user_model()._default_manager.select_for_update()
    list(users.filter(pk=user.pk).values_list("pk"))


def start_run(user: User | None, agent: Agent | None = None) -> None:
    """Count a run in the transaction that saves it, or raise QuotaExceeded.

    Free of queries without limits.
    """
    if user is not None and configured.CONCURRENT_RUNS.value:
        lock_user(user)
        _check_concurrent_runs(user)
    _count(_payer(user, agent), RUN_MEASURES, {"runs": 1})


def check_run(user: User | None, agent: Agent | None = None) -> None:
    """Raise QuotaExceeded if the user can't start another run now."""
    if user is not None:
        _check_concurrent_runs(user)
    _check(_payer(user, agent), RUN_MEASURES)


def count_message(user: User) -> None:
    """Count a message in the transaction that saves it, or raise QuotaExceeded.

    The user's row is locked first, as by `start_run`, and the counters of the message's run
    with its own: later, either would be locked in another order than elsewhere.
    """
    if configured.CONCURRENT_RUNS.value or configured.MESSAGES_PER_MINUTE.value:
        lock_user(user)
    _count(_payer(user), (Measure.MESSAGES,), {"messages": 1}, RUN_MEASURES)


def count_last_minute(rows: QuerySet[Any]) -> int:
    """Count the rows of the last minute, for limits over all processes that need no counter."""
    return rows.filter(created_at__gt=timezone.now() - timedelta(minutes=1)).count()


def check_calls(user: User) -> None:
    """Raise QuotaExceeded if the user's limits allow no more calls, e.g. for a title."""
    _check(_payer(user), HELD)


def _payer(user: User | None, agent: Agent | None = None) -> Payer:
    """Return who starts something here, perhaps with an API key."""
    key = api_keys.current()
    return Payer(
        user=None if user is None else user.pk,
        agent=None if agent is None else agent.pk,
        key=None if key is None else key.pk,
    )


def _check_concurrent_runs(user: User) -> None:
    max_runs = configured.CONCURRENT_RUNS.value
    if max_runs and Run.objects.running().filter(user=user.pk).count() >= max_runs:
        sentence = ngettext(
            "You already have %(most)d run in progress.",
            "You already have %(most)d runs in progress.",
            max_runs,
        )
        advice = _("Wait for one to finish, or stop one.")
        raise QuotaExceeded(sentence.fill(most=max_runs), advice=advice)


def _applicable_limits(payer: Payer, measures: Collection[str]) -> list[Limit]:
    if not limits.has_limits(measures):
        return []
    applicable = limits.limits_for(payer, groups_of(payer.user))
    return [limit for limit in applicable if limit.measure in measures]


def _check(payer: Payer, measures: Collection[str]) -> None:
    if applicable := _applicable_limits(payer, measures):
        _refuse_spent(applicable, counters.read(applicable, timezone.now()))


def _count(
    payer: Payer,
    measures: Collection[str],
    amounts: dict[str, int],
    also_locked: Collection[str] = (),
) -> None:
    """Check these measures and add the amounts to the counters that limit them."""
    if not (applicable := _applicable_limits(payer, measures)):
        return
    with transaction.atomic(savepoint=False):
        locked_limits = _applicable_limits(payer, also_locked)
        current_time = timezone.now()
        counts = counters.lock([*applicable, *locked_limits], current_time)
        _refuse_spent(applicable, counts)
        counted = [limit for limit in applicable if limit.measure in amounts]
        keys = counters.counter_keys(counted, current_time)
        counters.add([counts[key].pk for key in keys], amounts)


def _refuse_spent(
    applicable: list[Limit], counts: dict[counters.CounterKey, counters.Count]
) -> None:
    current_time = timezone.now()
    by_key = {(scope, window): count for (scope, window, _start), count in counts.items()}
    refused = [
        refusals.build_refusal(
            limit, "spent", spent=spent, resets_at=window_end(limit.window, current_time)
        )
        for limit in applicable
        for spent in [by_key[limit.scope, limit.window].spent[limit.measure]]
        if spent >= (limit.amount or 0)
    ]
    if refused:
        raise refusals.error(refusals.most_lasting(refused))


def keep_usage_of_run(instance: Run, origin: Any, **_signal: Any) -> None:
    """Count a run before it is deleted, so that deleting resets no limit."""
    if not instance.is_imported:
        keep_usage(payer_of(instance), origin, model=instance.model)


def keep_usage(payer: Payer, origin: Any, *, model: str = "") -> None:
    """Make sure that counters include what is about to be deleted.

    `origin` is what the deletion began with: with a user, nothing of theirs remains.
    """
    if not limits.is_any_set():
        return
    root = origin.model if isinstance(origin, QuerySet) else type(origin)
    if issubclass(root, get_user_model()):
        return
    applicable = limits.limits_for(payer, groups_of(payer.user), model=model)
    applicable += [limit for limit in limits.saved_limits() if limit.kind == "tool"]
    with transaction.atomic():
        counters.lock(applicable, timezone.now())


def forget_user(instance: User, **_signal: Any) -> None:
    """Delete the counters of a deleted user."""
    counters.delete_scope(f"user:{instance.pk}")
