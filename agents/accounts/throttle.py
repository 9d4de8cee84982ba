"""Throttles sign-in attempts by name, by address, and by both.

Waits grow with each attempt and are saved in rows, for all processes. Guessing another user's
password can make that user wait a minute at most, and not at all from where they have signed in
before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv6Address, ip_network

from django.db import transaction
from django.utils import timezone

from agents.access.audit.request_context import parse_address

from .models import Attempts

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
    now = timezone.now()
    keys = _keys(name, address)
    saved = Attempts.objects.in_bulk(keys)
    # First without a lock, so that refused attempts write nothing, however many there are.
    _check_waits(*(saved.get(key) or Attempts(key=key, last_at=now) for key in keys), now=now)
    with transaction.atomic():
        pair_row, address_row, name_row = _lock_rows(keys, now)
        _check_waits(pair_row, address_row, name_row, now=now)
        is_known = _is_known(pair_row, now)
        _increment(pair_row, NAME_AND_ADDRESS_LIMIT, now)
        # A known user adds to the count, but never makes others there wait longer.
        _increment(address_row, ADDRESS_LIMIT, now, waits=not is_known)
        if not is_known:
            _increment(name_row, NAME_LIMIT, now)


def _check_waits(
    pair_row: Attempts, address_row: Attempts, name_row: Attempts, *, now: datetime
) -> None:
    # A user known at this address only waits for attempts with their name there.
    checked_rows = [pair_row] if _is_known(pair_row, now) else [pair_row, address_row, name_row]
    wait_until = max(row.wait_until or now for row in checked_rows)
    if wait_until > now:
        raise TooManyAttempts(int((wait_until - now).total_seconds()) + 1)


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
    now = timezone.now()
    pair_key, _address_key, name_key = _keys(name, address)
    cleared = {"count": 0, "wait_until": None, "last_at": now}
    Attempts.objects.filter(key=name_key).update(**cleared)
    Attempts.objects.filter(key=pair_key).update(**cleared, succeeded_at=now)
    _delete_expired(now)


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


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()


def _lock_rows(keys: Iterable[str], now: datetime) -> list[Attempts]:
    """Return the rows, locked in an order that can't deadlock."""
    ordered = sorted(keys)
    rows = [Attempts(key=key, last_at=now) for key in ordered]
    Attempts.objects.bulk_create(rows, ignore_conflicts=True)
    found = Attempts.objects.select_for_update().order_by("key").in_bulk(ordered)
    return [found[key] for key in keys]


def _increment(row: Attempts, limit: Limit, now: datetime, *, waits: bool = True) -> None:
    is_old = now - row.last_at > RESET_AFTER
    row.count, row.last_at = 1 if is_old else row.count + 1, now
    if waits:
        wait = limit.wait(row.count)
        row.wait_until = now + wait if wait else None
    row.save()


def _decrement(limits: Mapping[str, Limit]) -> None:
    rows = Attempts.objects.select_for_update().order_by("key")
    for row in rows.filter(key__in=limits, count__gt=0):
        row.count -= 1
        row.wait_until = row.wait_until if limits[row.key].wait(row.count) else None
        row.save()


def _is_known(both: Attempts, now: datetime) -> bool:
    """Whether the user has signed in at this address before."""
    return both.succeeded_at is not None and now - both.succeeded_at < TRUSTED_FOR


def _delete_expired(now: datetime) -> None:
    old = Attempts.objects.filter(last_at__lt=now - RESET_AFTER)
    old.exclude(succeeded_at__gt=now - TRUSTED_FOR).delete()
