"""Rows that every message needs and that rarely change, in memory.

A change is visible in its process at once and in the others within MAX_AGE_SECONDS. Server
processes refresh with each status report, so that the event loop never waits for the database.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    connection,
    connections,
    models,
    transaction,
)
from django.db.models.signals import post_delete, post_save

from .raw_cursor import fetch

logger = logging.getLogger(__name__)

MAX_AGE_SECONDS = 5.0

Rows = TypeVar("Rows")


class RowCache(Generic[Rows]):
    """Loads rows again when their stamp has changed."""

    all: ClassVar[list["RowCache[Any]"]] = []
    max_age: ClassVar[float] = MAX_AGE_SECONDS

    def __init__(
        self,
        model: type[models.Model],
        load: Callable[[], Rows],
        empty: Callable[[], Rows],
        *,
        stamps: type[models.Model] | None = None,
    ) -> None:
        """`stamps` are the rows that say when these have changed, if they don't themselves."""
        self.model = model
        self.stamps = stamps or model
        self.load = load
        self.empty = empty
        self._rows: Rows = empty()
        self._stamp: Hashable = None
        self._read_at: float | None = None
        self._lock = threading.Lock()
        self._local = threading.local()
        self.all.append(self)
        post_save.connect(self._on_change, sender=model, weak=False)
        post_delete.connect(self._on_change, sender=model, weak=False)

    def get(self) -> Rows:
        """Return the rows; on an event loop those that were read last.

        A transaction that has changed them sees its own, which aren't for others yet.
        """
        if getattr(self._local, "is_changing", False) and not _is_on_loop():
            if connection.in_atomic_block:
                return self.load()
            self._local.is_changing = False
        read_at = self._read_at
        is_old = read_at is None or time.monotonic() - read_at > self.max_age
        if is_old and not _is_on_loop():
            self.refresh()
        return self._rows

    @property
    def last_read(self) -> Rows:
        """The rows as they were read last, without asking the database."""
        return self._rows

    def refresh(self) -> None:
        """Read the stamp, and the rows if it has changed."""
        with self._lock:
            started = time.monotonic()
            try:
                sql = _stamp_sql(self.stamps)
                [row] = fetch(connections[DEFAULT_DB_ALIAS], sql, ())
                stamp = tuple(row)  # how many rows there are, and when one was last changed
                if stamp != self._stamp:
                    self._rows = self.load()
                    self._stamp = stamp
            except DatabaseError as error:
                if self._stamp is None and connection.connection is None:
                    raise  # no server: each setting would wait for it again
                logger.warning("Can't read the %s: %s", self.model._meta.label, error)
            self._read_at = started

    def invalidate(self) -> None:
        """Read the rows again when they are needed next."""
        self._stamp = self._read_at = None

    def reset(self) -> None:
        """Forget the rows, as if there were none."""
        self._rows = self.empty()
        self._stamp = None
        self._read_at = time.monotonic()
        self._local = threading.local()

    def _on_change(self, **_signal: Any) -> None:
        self._local.is_changing = connection.in_atomic_block
        transaction.on_commit(self.invalidate)


@cache
def _stamp_sql(model: type[models.Model]) -> str:
    """Return the statement, built once because every process reads it every few seconds."""
    quote = connection.ops.quote_name
    table = model._meta.db_table
    return f"SELECT COUNT(*), MAX({quote('changed_at')}) FROM {quote(table)}"


def refresh_all() -> None:
    """Refresh all caches of this process."""
    for row_cache in RowCache.all:
        row_cache.refresh()


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
