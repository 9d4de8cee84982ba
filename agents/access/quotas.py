"""Quotas of users: checked where a message is sent, a run starts or a model is called."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.errors import AgentError
from agents.installation import configured
from agents.installation.setting import MICROS
from agents.models import DeletedUsage, Quota, Run

from . import quota_limits, quota_usage
from .quota_limits import Limit

Measure, Window = Quota.Measure, Quota.Window
RUN_MEASURES = (Measure.RUNS, Measure.TOKENS, Measure.COST)
READING = "_quota_reading"
PAID_MEASURES = (Measure.TOKENS, Measure.COST)


class QuotaExceeded(AgentError):
    """Nothing more is allowed for now."""


def lock_user(user: User) -> None:
    """Lock the user's row, so that concurrent runs are counted one by one."""
    if not connection.features.has_select_for_update:
        return  # SQLite has one writer at a time
    people = get_user_model()._default_manager.select_for_update()
    list(people.filter(pk=user.pk).values_list("pk"))


def check_start(user: User | None) -> None:
    """Lock the user and check whether another run can start; free of queries without quotas."""
    if user is not None and (configured.CONCURRENT_RUNS.value or quota_limits.is_any_set()):
        lock_user(user)
        check(user)


def check(user: User | None) -> None:
    """Raise QuotaExceeded if the user can't start another run now."""
    if user is None:
        return
    most = configured.CONCURRENT_RUNS.value
    if most and Run.objects.running().filter(user=user.pk).count() >= most:
        sentence = ngettext(
            "You already have %(most)d run in progress.",
            "You already have %(most)d runs in progress.",
            most,
        )
        raise QuotaExceeded(
            sentence % {"most": most}, advice=_("Wait for one to finish, or stop one.")
        )
    _check_measures(user, RUN_MEASURES)


def check_message(user: User) -> None:
    """Lock the user and raise QuotaExceeded if they can't send another message."""
    if quota_limits.has_limits((Measure.MESSAGES,)):
        lock_user(user)
        _check_measures(user, (Measure.MESSAGES,))


@contextmanager
def one_reading(user: User) -> Iterator[None]:
    """Read the user's usage at most once in this transaction, in which they are locked."""
    vars(user)[READING] = None
    try:
        yield
    finally:
        vars(user).pop(READING, None)


def read_usage(user: User) -> quota_usage.Usage:
    """Return what the user has used, as far back as any quota goes."""
    known: quota_usage.Usage | None = vars(user).get(READING)
    if known is not None:
        return known
    is_month = quota_limits.widest_window() == Window.MONTH
    used = quota_usage.read(user.pk, None if is_month else quota_usage.day_start())
    if READING in vars(user):
        vars(user)[READING] = used
    return used


def check_tokens(user: User) -> None:
    """Raise QuotaExceeded if the user has used up their tokens or money, e.g. for a title."""
    _check_measures(user, PAID_MEASURES)


def _check_measures(user: User, measures: Collection[str]) -> None:
    if not quota_limits.has_limits(measures):
        return
    used = read_usage(user)
    for limit in quota_limits.resolve(user.pk, used.groups):
        amount = used.amounts[limit.key]
        if limit.key[0] in measures and limit.amount is not None and amount >= limit.amount:
            raise _exceeded(limit, amount)


def _exceeded(limit: Limit, used: int) -> QuotaExceeded:
    measure, window = limit.key
    most = format_amount(measure, limit.amount or 0)
    sentence = SENTENCES[window]() % {"most": most, "used": format_amount(measure, used)}
    return QuotaExceeded(sentence, advice=reset_sentence(window))


SENTENCES: dict[str, Callable[[], str]] = {
    Window.DAY: lambda: _("You've reached your daily limit of %(most)s (used: %(used)s)."),
    Window.MONTH: lambda: _("You've reached your monthly limit of %(most)s (used: %(used)s)."),
}


def reset_sentence(window: str) -> str:
    """Return when a window starts over, in the user's time zone."""
    at = timezone.localtime(quota_usage.next_start(window))
    when = date_format(at, "DATETIME_FORMAT")
    return _("The limit resets on %(when)s.") % {"when": when}


def format_amount(measure: str, amount: int) -> str:
    """Return an amount with its unit."""
    if measure == Measure.COST:
        return f"${amount / MICROS:,.2f}"
    if measure == Measure.RUNS:
        return ngettext("%(count)s run", "%(count)s runs", amount) % {"count": f"{amount:,}"}
    if measure == Measure.MESSAGES:
        sentence = ngettext("%(count)s message", "%(count)s messages", amount)
        return sentence % {"count": f"{amount:,}"}
    return ngettext("%(count)s token", "%(count)s tokens", amount) % {"count": f"{amount:,}"}


def keep_usage_of_run(instance: Run, origin: Any, **_signal: Any) -> None:
    """Count a run that is about to be deleted until the end of the month."""
    if instance.road == Run.IMPORTED:
        return
    amounts = {
        "runs": 1,
        "tokens": instance.prompt_tokens + instance.completion_tokens,
        "cost": round((instance.cost or 0) * MICROS),
    }
    keep_usage(instance.user_id, instance.started_at, origin, **amounts)


def keep_usage(user: int | None, used_at: datetime, origin: Any, **amounts: int) -> None:
    """Count what is about to be deleted, so that deleting doesn't reset a limit.

    `origin` is what the deletion began with: with a user, nothing of theirs remains.
    """
    if user is None or not any(amounts.values()) or not quota_limits.is_any_set():
        return
    model = origin.model if isinstance(origin, QuerySet) else type(origin)
    if used_at < quota_usage.month_start() or issubclass(model, get_user_model()):
        return
    day = timezone.localtime(used_at, timezone.get_default_timezone()).date()
    row, is_new = DeletedUsage.objects.get_or_create(amounts, user_id=user, day=day)
    if not is_new:
        more = {name: F(name) + amount for name, amount in amounts.items()}
        DeletedUsage.objects.filter(pk=row.pk).update(**more)
