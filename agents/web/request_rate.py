"""Limits how often something is requested, per minute and process."""

from functools import lru_cache
from threading import Lock

from agents.engine.resilience import WINDOW_SECONDS, TokenBucket

_lock = Lock()  # views run in threads


def is_exceeded(what: str, who: str | int, most: int) -> bool:
    """Count a request, and return whether there were more than `most` per minute."""
    with _lock:
        return not bucket_of(what, who, most).allows()


@lru_cache(maxsize=10_000)
def bucket_of(what: str, who: str | int, most: int) -> TokenBucket:
    return TokenBucket(most, most / WINDOW_SECONDS)
