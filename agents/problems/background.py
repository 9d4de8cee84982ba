"""Groups problems in the background, once a minute."""

import time

from django.utils import timezone

from agents.db.periodic import periodic

from . import collector, spikes

# Between batches of older runs, so that chats come first.
PAUSE_SECONDS = 0.2


@periodic(collector.JOB_NAME, every=60, once=True)
def collect_problems() -> None:
    collector.collect()
    spikes.detect()
    while collector.collect_history():
        time.sleep(PAUSE_SECONDS)


@periodic("old problem counts", every=3_600, once=True)
def delete_old_counts() -> None:
    spikes.delete_old_counts(timezone.now())
