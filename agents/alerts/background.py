"""Announces, sends and retries in the background, once a minute."""

import logging
from collections.abc import Callable

from django.utils import timezone

from agents.db.periodic import Interval, PeriodicThread

from . import delivery, rules, schedules

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 60.0
DELAY_SECONDS = 20.0  # so that the problems of the same minute are grouped before
CLEAN_SECONDS = 3_600.0

_cleanings = Interval(CLEAN_SECONDS)


def _work() -> None:
    for step in (rules.announce, schedules.send_due, delivery.deliver_due):
        _attempt(step)
    if _cleanings.is_due():
        _attempt(lambda: delivery.delete_old(timezone.now()))


def _attempt(step: Callable[[], object]) -> None:
    try:
        step()
    except Exception:  # the next check tries again
        logger.exception("Can't process alerts.")


thread = PeriodicThread("alerts", _work, INTERVAL_SECONDS, DELAY_SECONDS)
