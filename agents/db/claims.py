"""Claims: one process works on an item, although all of them look for work.

For what is done at once, such as a schedule that is due, `compare_and_set` is enough: the
process that moves its time on does it. What takes a while, such as reading a document, has a
lease (`Leased`, in `agents.models.knowledge.leases`): a process takes it, renews it at work
and releases it, possibly with a pause before the next attempt. If the process dies, another
one takes over when the lease has ended. Only its holder can write (`held`), so a process that
was too slow changes nothing.

Runs have a lease of their own (`agents.runs.leases`), and work that all processes share, such
as a cleanup, is a job of `periodic`.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from agents.models.knowledge.leases import Leased

Row = TypeVar("Row", bound=Leased)

# Ends the work of others on an item, as when a user cancels it.
NO_LEASE: dict[str, Any] = {"lease": "", "lease_until": None}


class ClaimLost(Exception):
    """Raised when an item was canceled, deleted or taken over."""


def compare_and_set(row: Model, column: str, value: object, **values: Any) -> bool:
    """Save values, unless the column has changed since the row was read; return whether."""
    same = type(row)._base_manager.filter(pk=row.pk, **{column: getattr(row, column)})
    return same.update(**{column: value}, **values) == 1


def is_due(now: datetime) -> Q:
    """Items that no process has, or one that has died, and that don't pause."""
    return Q(lease_until=None) | Q(lease_until__lt=now)


def take(row: Row, *, among: QuerySet[Row] | None = None, **values: Any) -> bool:
    """Take the lease of a row as it was read; return False if a process has it.

    Its pause is up to the caller. `among` are the rows that may be taken, if that can change.
    """
    now = timezone.now()
    if row.lease and row.lease_until is not None and row.lease_until >= now:
        return False
    rows: QuerySet[Any] = type(row)._base_manager.all() if among is None else among
    same = rows.filter(pk=row.pk, lease=row.lease, lease_until=row.lease_until)
    values |= {"lease": secrets.token_hex(8), "lease_until": now + row.LEASE}
    if not same.update(**values):
        return False
    row.was_abandoned = bool(row.lease)
    _assign(row, values)
    return True


def take_all(rows: QuerySet[Row], max_rows: int | None = None, **values: Any) -> QuerySet[Row]:
    """Take the first of these rows with one lease, unless a process has them; return them."""
    now = timezone.now()
    pks = list(rows.values_list("pk", flat=True)[:max_rows])
    batch = rows.model._base_manager.filter(pk__in=pks)
    lease = secrets.token_hex(8)
    free = batch.filter(Q(lease="") | is_due(now))
    free.update(lease=lease, lease_until=now + rows.model.LEASE, **values)
    return batch.filter(lease=lease)


def held(row: Leased) -> QuerySet[Any]:
    """Return the row while the lease with which it was read or taken holds, else no row."""
    rows = type(row)._base_manager.exclude(lease="")
    return rows.filter(pk=row.pk, lease=row.lease)


def renew(row: Leased, **values: Any) -> None:
    """Save values and renew the lease; raise ClaimLost."""
    values |= {"lease_until": timezone.now() + row.LEASE}
    if not held(row).update(**values):
        raise ClaimLost
    _assign(row, values)


def release(row: Leased, *, until: datetime | None = None, **values: Any) -> bool:
    """Save values and end the lease; False if it was lost.

    Until a time, if one is given, the item isn't due.
    """
    return held(row).update(lease="", lease_until=until, **values) == 1


def release_all(rows: Sequence[Leased], **values: Any) -> None:
    """Save the same values for rows of one lease, as far as it holds."""
    if rows:
        leased = type(rows[0])._base_manager.filter(lease=rows[0].lease).exclude(lease="")
        batch = leased.filter(pk__in=[row.pk for row in rows])
        batch.update(**NO_LEASE, **values)


def _assign(row: Leased, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
