"""Limits how often something is requested, per minute and process."""

import time

from django.core.cache import cache

WINDOW_SECONDS = 60


def is_exceeded(what: str, who: str | int, most: int) -> bool:
    """Count a request, and return whether there were more than `most` in this minute."""
    key = f"rate.{what}.{who}.{int(time.time() // WINDOW_SECONDS)}"
    cache.add(key, 0, 2 * WINDOW_SECONDS)
    try:
        return cache.incr(key) > most
    except ValueError:  # the entry was evicted meanwhile
        return False
