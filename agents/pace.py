"""How fast somebody may go: so many at once, and from then on so many a second."""

import time


class Pace:
    def __init__(self, at_once: int, a_second: float) -> None:
        self.at_once = at_once
        self.a_second = a_second
        self._left = float(at_once)
        self._last = time.monotonic()

    def allows(self) -> bool:
        """Whether one more is within the pace; if so, it counts."""
        now = time.monotonic()
        grown = self._left + (now - self._last) * self.a_second
        self._left, self._last = min(self.at_once, grown), now
        if self._left < 1:
            return False
        self._left -= 1
        return True
