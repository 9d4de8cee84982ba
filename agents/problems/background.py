"""Groups problems in the background: one thread at a time, every few seconds."""

import logging
import threading
import time
from datetime import timedelta

from django.db import connections
from django.utils import timezone

from agents.models import Run

from . import collector, spikes

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
CLEAN_INTERVAL = timedelta(hours=1)
# Between batches of older runs, so that chats come first.
PAUSE_SECONDS = 0.2

_next_look = 0.0
_next_cleaning = timezone.now()
_is_working = threading.Lock()


async def collect_if_due(run: Run | None) -> None:
    """Group what ended, at a periodic check. What a run costs doesn't change."""
    global _next_look
    if run is not None or time.monotonic() < _next_look:
        return
    _next_look = time.monotonic() + INTERVAL_SECONDS
    if not _is_working.locked():
        threading.Thread(target=_work, name="problems", daemon=True).start()


def _work() -> None:
    global _next_cleaning
    with _is_working:
        try:
            collector.collect()
            spikes.detect()
            while collector.collect_history():
                time.sleep(PAUSE_SECONDS)
            if timezone.now() >= _next_cleaning:
                _next_cleaning = timezone.now() + CLEAN_INTERVAL
                spikes.delete_old_counts(timezone.now())
        except Exception:  # the next check tries again
            logger.exception("Can't group problems.")
        finally:
            connections.close_all()
