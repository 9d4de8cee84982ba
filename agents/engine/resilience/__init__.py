"""Retries, circuit breakers and rate limits."""

from .circuit_breaker import CircuitPolicy, Circuits, CircuitState
from .rate_limiter import Limits, RateLimiter, TokenBucket
from .retry import RetryPolicy

__all__ = [
    "CircuitPolicy",
    "CircuitState",
    "Circuits",
    "Limits",
    "RateLimiter",
    "RetryPolicy",
    "TokenBucket",
]
