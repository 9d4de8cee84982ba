"""The token bucket behind every steady rate: socket frames, page requests, a model's limits."""

from collections.abc import Callable
from time import monotonic

WINDOW_SECONDS = 60
ROUNDING = 1e-6  # of a permit; drained floats are rarely whole


class TokenBucket:
    """Holds up to `capacity` permits and refills at a steady rate, as providers count.

    It counts what was taken, not what is left, so that a row can save it and a changed limit
    applies at once. `since` is when `used` was counted, by the same clock.
    """

    def __init__(
        self,
        capacity: float,
        per_second: float,
        *,
        used: float = 0.0,
        since: float | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.capacity = capacity
        self.per_second = per_second
        self._clock = clock
        self._used = used
        self._counted_at = clock() if since is None else since

    @property
    def used(self) -> float:
        """Return what was taken and isn't refilled yet."""
        current_time = max(self._clock(), self._counted_at)
        refilled = (current_time - self._counted_at) * self.per_second
        self._used = max(0.0, self._used - refilled)
        self._counted_at = current_time
        return self._used

    def allows(self) -> bool:
        """Take a permit if there is one."""
        if self.seconds_until_free() > 0:
            return False
        self.spend(1)
        return True

    def spend(self, permits: float) -> None:
        """Take permits even if there are too few; the debt is refilled first."""
        self._used = self.used + permits

    def seconds_until_free(self) -> float:
        """Return the seconds until a whole permit is available; 0 if there is one."""
        missing = self.used + 1 - self.capacity
        return missing / self.per_second if missing > ROUNDING else 0.0
