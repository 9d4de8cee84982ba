"""Throttles sign-in attempts by name, by address, and by both.

Waits grow with each attempt and are saved in rows, for all processes. Guessing another user's
password can make that user wait a minute at most, and not at all from where they have signed in
before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv6Address, ip_network

from django.db import transaction
from django.utils import timezone

from agents.access.audit.request_context import parse_address

from ..models import Attempts

# No token bucket: that one refills at the same pace however often someone guesses wrong.
RESET_AFTER = timedelta(hours=1)
TRUSTED_FOR = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A number of free attempts, then a wait that doubles from 1 s up to a maximum."""

    free: int
    longest: timedelta

    def wait(self, count: int) -> timedelta | None:
        over = count - self.free
        return min(timedelta(seconds=2 ** min(over, 20)), self.longest) if over >= 0 else None


NAME_AND_ADDRESS_LIMIT = Limit(free=5, longest=timedelta(minutes=15))
ADDRESS_LIMIT = Limit(free=30, longest=timedelta(minutes=15))
NAME_LIMIT = Limit(free=10, longest=timedelta(minutes=1))


class TooManyAttempts(Exception):
    """Raised after too many attempts; `seconds` is the remaining wait."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def count_attempt(name: str, address: str) -> None:
    """Count an attempt before it is checked, so that concurrent ones count.

    Raises TooManyAttempts.
    """
    current_time = timezone.now()
    keys = _keys(name, address)
    saved = Attempts.objects.in_bulk(keys)
    # First without a lock, so that refused attempts write nothing, however many there are.
    rows = (saved.get(key) or Attempts(key=key, last_at=current_time) for key in keys)
    _check_waits(*rows, current_time=current_time)
    with transaction.atomic():
        # Locked in an order that can't deadlock.
        ordered = sorted(keys)
        Attempts.objects.bulk_create(
            (Attempts(key=key, last_at=current_time) for key in ordered), ignore_conflicts=True
        )
        locked = Attempts.objects.select_for_update().order_by("key").in_bulk(ordered)
        pair_row, address_row, name_row = (locked[key] for key in keys)
        _check_waits(pair_row, address_row, name_row, current_time=current_time)
        is_known = _is_known(pair_row, current_time)
        _increment(pair_row, NAME_AND_ADDRESS_LIMIT, current_time)
        # A known user adds to the count, but never makes others there wait longer.
        _increment(address_row, ADDRESS_LIMIT, current_time, waits=not is_known)
        if not is_known:
            _increment(name_row, NAME_LIMIT, current_time)


def _check_waits(
    pair_row: Attempts, address_row: Attempts, name_row: Attempts, *, current_time: datetime
) -> None:
    # A user known at this address only waits for attempts with their name there.
    checked_rows = (
        [pair_row] if _is_known(pair_row, current_time) else [pair_row, address_row, name_row]
    )
    wait_until = max(row.wait_until or current_time for row in checked_rows)
    if wait_until > current_time:
        raise TooManyAttempts(int((wait_until - current_time).total_seconds()) + 1)


def refund_attempt(name: str, address: str) -> None:
    """Take back the attempt counted for the address, because it succeeded.

    Only this one: otherwise anyone with an account could guess others' passwords and sign in
    with their own in between.
    """
    _pair_key, address_key, _name_key = _keys(name, address)
    with transaction.atomic():
        _decrement({address_key: ADDRESS_LIMIT})


def withdraw_attempt(name: str, address: str) -> None:
    """Take back all of an attempt, because nothing was checked."""
    pair_key, address_key, name_key = _keys(name, address)
    with transaction.atomic():
        row = Attempts.objects.filter(key=pair_key).first()
        counted = {pair_key: NAME_AND_ADDRESS_LIMIT, address_key: ADDRESS_LIMIT}
        if row is not None and not _is_known(row, timezone.now()):
            counted[name_key] = NAME_LIMIT
        _decrement(counted)


def record_success(name: str, address: str) -> None:
    """Clear the attempts for the account. Those for the address stay."""
    current_time = timezone.now()
    pair_key, _address_key, name_key = _keys(name, address)
    cleared = {"count": 0, "wait_until": None, "last_at": current_time}
    Attempts.objects.filter(key=name_key).update(**cleared)
    Attempts.objects.filter(key=pair_key).update(**cleared, succeeded_at=current_time)
    expired = Attempts.objects.filter(last_at__lt=current_time - RESET_AFTER)
    expired.exclude(succeeded_at__gt=current_time - TRUSTED_FOR).delete()


def _keys(name: str, address: str) -> tuple[str, str, str]:
    ip_address = parse_address(address)
    # An IPv6 client controls its whole /64 network.
    network = (
        ip_network((ip_address, 64), strict=False)
        if isinstance(ip_address, IPv6Address)
        else ip_address
    )
    folded_name = name.casefold()
    return (
        _digest("both", folded_name, str(network)),
        _digest("there", str(network)),
        _digest("name", folded_name),
    )


def _digest(*values: str) -> str:
    return sha256("\0".join(values).encode(errors="replace")).hexdigest()


def _increment(
    row: Attempts, limit: Limit, current_time: datetime, *, waits: bool = True
) -> None:
    is_old = current_time - row.last_at > RESET_AFTER
    row.count = 1 if is_old else row.count + 1
    row.last_at = current_time
    if waits:
        wait = limit.wait(row.count)
        row.wait_until = current_time + wait if wait else None
    row.save()


def _decrement(limits: Mapping[str, Limit]) -> None:
    rows = Attempts.objects.select_for_update().order_by("key")
    for row in rows.filter(key__in=limits, count__gt=0):
        row.count -= 1
        row.wait_until = row.wait_until if limits[row.key].wait(row.count) else None
        row.save()


def _is_known(pair_row: Attempts, current_time: datetime) -> bool:
    """Whether the user has signed in at this address before."""
    return (
        pair_row.succeeded_at is not None and current_time - pair_row.succeeded_at < TRUSTED_FOR
    )
