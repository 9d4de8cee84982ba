"""Quotas per user: concurrent runs and tokens per day."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db.models import F, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.errors import AgentError
from agents.models import DeletedUsage, Run
from agents.models.types import AnyUser

# Counts tokens used outside of runs, by user and since when.
other_usage: list[Callable[[AnyUser, datetime], int]] = []


class QuotaExceeded(AgentError):
    """Nothing more is allowed for now."""


def lock_user(user: User) -> None:
    """Lock the user's row, so that concurrent runs are counted one by one."""
    people = get_user_model()._default_manager.select_for_update()
    list(people.filter(pk=user.pk).values_list("pk"))


def check(user: User | None) -> None:
    """Raise QuotaExceeded if the user can't start another run now."""
    if user is None:
        return
    most = settings.PERSON_RUNS
    if most and Run.objects.running().filter(user=user.pk).count() >= most:
        sentence = ngettext(
            "You already have %(most)d run in progress.",
            "You already have %(most)d runs in progress.",
            most,
        )
        raise QuotaExceeded(
            sentence % {"most": most}, advice=_("Wait for one to finish, or stop one.")
        )
    check_tokens(user)


def check_tokens(user: User) -> None:
    """Raise QuotaExceeded if the user has used up today's tokens."""
    most = settings.PERSON_TOKENS
    if most and _tokens_today(user) >= most:
        sentence = _("You've reached your daily limit of %(most)s tokens.") % {
            "most": f"{most:,}"
        }
        raise QuotaExceeded(sentence, advice=_("The limit resets tomorrow."))


def _tokens_today(user: AnyUser) -> int:
    midnight = _midnight()
    runs = Run.objects.filter(user=user.pk, started_at__gte=midnight)
    used = runs.aggregate(sum=Sum(F("prompt_tokens") + F("completion_tokens")))
    deleted = DeletedUsage.objects.filter(user=user.pk, day=midnight.date())
    counts = [used["sum"] or 0, *deleted.values_list("tokens", flat=True)]
    return sum(counts) + sum(count(user, midnight) for count in other_usage)


def _midnight() -> datetime:
    """Return when the installation's day began, whichever time zone the user's pages are in."""
    now = timezone.localtime(timezone=timezone.get_default_timezone())
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def keep_usage_of_run(instance: Run, origin: Any, **_signal: Any) -> None:
    """Count the tokens of a run that is about to be deleted until the end of the day."""
    tokens = instance.prompt_tokens + instance.completion_tokens
    keep_usage(instance.user_id, instance.started_at, tokens, origin)


def keep_usage(user: int | None, used_at: datetime, tokens: int, origin: Any) -> None:
    """Count tokens whose row is about to be deleted, so that deleting doesn't reset the limit.

    `origin` is what the deletion began with: with a user, nothing of theirs remains.
    """
    is_needed = settings.PERSON_TOKENS and tokens and used_at >= _midnight()
    model = getattr(origin, "model", type(origin))
    if user is None or not is_needed or issubclass(model, get_user_model()):
        return
    today = _midnight().date()
    fresh = {"day": today, "tokens": tokens}
    _row, is_new = DeletedUsage.objects.get_or_create(fresh, user_id=user)
    if is_new:
        return
    rows = DeletedUsage.objects.filter(user=user)
    if not rows.filter(day=today).update(tokens=F("tokens") + tokens):
        rows.update(**fresh)
