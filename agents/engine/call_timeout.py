"""The timeout of a running call, which the call can extend and pause."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# However often a call asks for more time, one attempt ends after this, not counting the time it
# waited for a person or the model.
MAX_CALL_SECONDS = 3600.0


class CallTimeout:
    """Reschedules the timeout of one attempt; thread-safe."""

    def __init__(self, timeout: asyncio.Timeout, seconds: float) -> None:
        self.seconds = seconds
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._ceiling = self._loop.time() + max(seconds, MAX_CALL_SECONDS)
        self._pauses = 0
        self._paused_at = 0.0
        self._left = 0.0

    def extend(self) -> None:
        """Give the call its full timeout from now, up to the ceiling."""
        if not _is_running(self._loop):
            self._loop.call_soon_threadsafe(self.extend)
        elif self._pauses:
            self._left = self.seconds
        else:
            self._reschedule(min(self._loop.time() + self.seconds, self._ceiling))

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the clock in this block."""
        if not self._pauses:
            self._paused_at = self._loop.time()
            self._left = (self._timeout.when() or self._paused_at) - self._paused_at
            self._reschedule(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                current_time = self._loop.time()
                self._ceiling += current_time - self._paused_at
                self._reschedule(min(current_time + self._left, self._ceiling))

    def _reschedule(self, when: float | None) -> None:
        with suppress(RuntimeError):  # the attempt is over
            self._timeout.reschedule(when)


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this thread runs the loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
