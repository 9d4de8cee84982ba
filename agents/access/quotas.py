"""Quotas per user: concurrent runs and tokens per day."""

from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db.models import F, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.errors import AgentError
from agents.models import Run
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
    # The installation's day, whichever time zone the user's pages are in.
    now = timezone.localtime(timezone=timezone.get_default_timezone())
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    runs = Run.objects.filter(user=user.pk, started_at__gte=midnight)
    used = runs.aggregate(sum=Sum(F("prompt_tokens") + F("completion_tokens")))
    return (used["sum"] or 0) + sum(count(user, midnight) for count in other_usage)
