"""Groups problems in the background, once a minute."""

import time
from datetime import timedelta

from django.utils import timezone

from agents.db.periodic import Interval, PeriodicThread

from . import collector, spikes

INTERVAL_SECONDS = 60.0
CLEAN_INTERVAL = timedelta(hours=1)
# Between batches of older runs, so that chats come first.
PAUSE_SECONDS = 0.2

_cleanings = Interval(CLEAN_INTERVAL.total_seconds())


def _work() -> None:
    collector.collect()
    spikes.detect()
    while collector.collect_history():
        time.sleep(PAUSE_SECONDS)
    if _cleanings.is_due():
        spikes.delete_old_counts(timezone.now())


thread = PeriodicThread("problems", _work, INTERVAL_SECONDS)
