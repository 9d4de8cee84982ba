"""Hashes passwords, which takes memory on purpose: a few at a time, for whoever asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from django.contrib.auth.hashers import Argon2PasswordHasher
from django.utils.translation import gettext_lazy as _

MAX_CONCURRENT = 2
MAX_WAITING = 50
TIMEOUT_SECONDS = 20.0  # seconds
BUSY = _("Too many users are signing in at the moment. Wait a few seconds and try again.")


class PasswordsBusy(Exception):
    """Raised when too many passwords are waiting to be hashed."""


class PasswordHasher(Argon2PasswordHasher):
    """For PASSWORD_HASHERS: OWASP's second profile for Argon2id, 19 MiB per password.

    Passwords that were hashed with other parameters are hashed again at the next sign-in.
    """

    time_cost = 2
    memory_cost = 19_456  # KiB
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with _acquire_slot():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with _acquire_slot():
            return super().verify(password, encoded)


_slots = BoundedSemaphore(MAX_CONCURRENT)
_lock = Lock()
_waiting = 0


@contextmanager
def _acquire_slot() -> Iterator[None]:
    """Wait for a slot; raise PasswordsBusy if too many others do."""
    global _waiting
    with _lock:
        if _waiting >= MAX_WAITING:
            raise PasswordsBusy(str(BUSY))
        _waiting += 1
    try:
        has_slot = _slots.acquire(timeout=TIMEOUT_SECONDS)
    finally:
        with _lock:
            _waiting -= 1
    if not has_slot:
        raise PasswordsBusy(str(BUSY))
    try:
        yield
    finally:
        _slots.release()
