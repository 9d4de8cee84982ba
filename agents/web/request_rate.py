"""Limits how often something is requested, per minute and process."""

from functools import lru_cache
from threading import Lock

from agents.engine.resilience import WINDOW_SECONDS, TokenBucket

_lock = Lock()  # views run in threads


def is_exceeded(action: str, requester: str | int, max_requests: int) -> bool:
    """Count a request, and return whether there were more than `max_requests` per minute."""
    with _lock:
        return not bucket_of(action, requester, max_requests).allows()


@lru_cache(maxsize=10_000)
def bucket_of(action: str, requester: str | int, max_requests: int) -> TokenBucket:
    return TokenBucket(max_requests, max_requests / WINDOW_SECONDS)
