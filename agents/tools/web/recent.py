"""Results that are used again for some minutes, in the memory of this process."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

LIFETIME_SECONDS = 600.0


class RecentResults(Generic[Value]):
    """The newest results, up to a total size."""

    def __init__(
        self,
        max_size: int,
        size_of: Callable[[Value], int],
        *,
        lifetime: float = LIFETIME_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_size = max_size
        self._size_of = size_of
        self._lifetime = lifetime
        self._clock = clock
        self._entries: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> Value | None:
        """Return a result that is still fresh."""
        saved_at, value = self._entries.get(key, (float("-inf"), None))
        return value if self._clock() - saved_at < self._lifetime else None

    def add(self, key: Hashable, value: Value) -> None:
        """Save a result; the oldest and expired ones make room for it."""
        size = self._size_of(value)
        if size > self._max_size:
            return
        self._remove(key)
        self._entries[key] = (self._clock(), value)
        self._size += size
        while self._entries:
            oldest, (saved_at, _value) = next(iter(self._entries.items()))
            is_fresh = self._clock() - saved_at < self._lifetime
            if is_fresh and self._size <= self._max_size:
                break
            self._remove(oldest)

    def clear(self) -> None:
        self._entries.clear()
        self._size = 0

    def _remove(self, key: Hashable) -> None:
        if key in self._entries:
            _saved_at, value = self._entries.pop(key)
            self._size -= self._size_of(value)
