"""Retries, circuit breakers and rate limits."""

from .circuit_breaker import CircuitPolicy, Circuits, CircuitState
from .rate_limiter import LimitKind, Limits, QueuePlace, RateLimiter, SlotRequest
from .retry import RetryPolicy
from .token_bucket import WINDOW_SECONDS, TokenBucket

__all__ = [
    "WINDOW_SECONDS",
    "CircuitPolicy",
    "CircuitState",
    "Circuits",
    "LimitKind",
    "Limits",
    "QueuePlace",
    "RateLimiter",
    "RetryPolicy",
    "SlotRequest",
    "TokenBucket",
]
