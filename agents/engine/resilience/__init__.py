"""Retries, circuit breakers and rate limits."""

from .circuit_breaker import CircuitPolicy, Circuits, CircuitState
from .rate_limiter import (
    WINDOW_SECONDS,
    LimitKind,
    Limits,
    LocalRateLimiter,
    QueuePlace,
    RateLimiter,
    SlotRequest,
    TokenBucket,
)
from .retry import RetryPolicy

__all__ = [
    "WINDOW_SECONDS",
    "CircuitPolicy",
    "CircuitState",
    "Circuits",
    "LimitKind",
    "Limits",
    "LocalRateLimiter",
    "QueuePlace",
    "RateLimiter",
    "RetryPolicy",
    "SlotRequest",
    "TokenBucket",
]
