"""Retries a model request if that may help and nothing was received yet."""

import random
from dataclasses import dataclass

from agents.engine.errors import AgentError


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Retries with growing pauses, or after the provider's `Retry-After`.

    A provider that asks for more than `max_pause` seconds isn't waited for.
    """

    max_retries: int = 2
    pause: float = 0.5
    max_pause: float = 30.0

    def wait(self, error: AgentError, attempt: int) -> float | None:
        """Return the seconds before the next attempt, or None if it would be useless."""
        if attempt > self.max_retries or not error.is_passing:
            return None
        retry_after: float | None = getattr(error, "retry_after", None)
        if retry_after is not None:
            return retry_after if retry_after <= self.max_pause else None
        # Jitter, so that runs that failed together don't retry together.
        pause: float = min(self.max_pause, self.pause * 2**attempt)
        return pause * random.uniform(0.5, 1)
