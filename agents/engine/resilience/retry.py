"""Asking a model again, where that may help and nothing has been said yet."""

import random
from dataclasses import dataclass

from agents.engine.errors import AgentError


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """So many more attempts, each after a longer pause, or after what the provider asks for.

    A provider that asks for more than `most` seconds is not waited for.
    """

    max_retries: int = 2
    pause: float = 0.5
    most: float = 30.0

    def wait(self, error: AgentError, attempt: int) -> float | None:
        """Seconds before the next attempt; None where another one would be useless."""
        if attempt > self.max_retries or not error.is_passing:
            return None
        asked: float | None = getattr(error, "retry_after", None)
        if asked is not None:
            return asked if asked <= self.most else None
        # Jitter, or all runs that failed together would come back together.
        pause: float = min(self.most, self.pause * 2**attempt)
        return pause * random.uniform(0.5, 1)
