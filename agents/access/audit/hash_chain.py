"""The entries as a hash chain.

Each is sealed with a key from outside the database, together with the seal of its predecessor,
so that nothing can be changed, inserted or removed unnoticed.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import connection, transaction

from agents.models import AuditEntry, AuditHead
from agents.models.audit import GENESIS

LOG_TRUNCATED = "audit.cut"
PAGE_SIZE = 1000
COLUMNS = (
    "number",
    "at",
    "person__token",
    "action",
    "subject",
    "detail",
    "place",
    "key",
    "previous",
    "seal",
)
SEALED_COLUMNS = ("number", "at", "action", "subject", "detail", "place", "key", "previous")


class Flaw(StrEnum):
    CHANGED = "changed"
    REMOVED = "removed"
    INSERTED = "inserted"
    TAIL_CUT = "tail cut"
    REWRITTEN = "rewritten"
    KEY_GONE = "key gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A known end of the chain, saved where the database's users can't write."""

    number: int
    seal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainVerification:
    """Whether the chain is intact; otherwise the first flaw and its position."""

    checked: int
    end: Anchor
    since: int = 1
    flaw: Flaw | None = None
    number: int = 0

    @property
    def holds(self) -> bool:
        return self.flaw is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An entry as it is sealed."""

    number: int
    at: datetime
    person: str
    action: str
    subject: str
    detail: Any
    place: str
    key: str
    previous: str
    seal: str = ""

    @property
    def is_valid(self) -> bool:
        key = _keys().get(self.key)
        return key is not None and hmac.compare_digest(self.compute_seal(key), self.seal)

    def compute_seal(self, key: bytes) -> str:
        values = [
            1,
            self.number,
            self.previous,
            self.key,
            self.at.astimezone(UTC).isoformat(timespec="microseconds"),
            self.person,
            self.place,
            self.action,
            self.subject,
            self.detail,
        ]
        payload = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
        return hmac.new(key, payload, hashlib.sha256).hexdigest()


def append(entries: Sequence[AuditEntry]) -> None:
    """Append entries to the chain; concurrent writers wait."""
    with transaction.atomic(savepoint=False):
        head = _lock_head()
        for entry in entries:
            seal(entry, entry.person.token, head)
        AuditEntry.objects.bulk_create(entries)
        end = {"number": head.number, "seal": head.seal}
        AuditHead.objects.filter(pk=AuditHead.ONLY).update(**end)


def seal(entry: Any, person: str, head: Any) -> None:
    """Seal an entry as the next one of this chain."""
    name, key = next(iter(_keys().items()))
    entry.number = head.number + 1
    entry.previous = head.seal
    entry.key = name
    link = Link(person=person, **{column: getattr(entry, column) for column in SEALED_COLUMNS})
    entry.seal = head.seal = link.compute_seal(key)
    head.number = entry.number


def verify(*, newest: int | None = None, anchor: Anchor | None = None) -> ChainVerification:
    """Verify the chain, or only its newest entries, up to the first flaw."""
    head = AuditHead.objects.filter(pk=AuditHead.ONLY).first() or AuditHead()
    end = Anchor(number=head.number, seal=head.seal)
    cut = _truncation_point()
    since = cut.number if newest is None else max(cut.number, end.number - newest)
    last = cut if since == cut.number else Anchor(number=since, seal="")
    finding = None
    for link in _links_after(since):
        if (finding := _find_flaw(link, last)) is not None:
            break
        last = Anchor(number=link.number, seal=link.seal)
    checked = max(last.number - since, 0)
    if finding is None:
        finding = _check_end(last, end) or (_check_end(last, anchor, cut) if anchor else None)
    flaw, number = finding or (None, 0)
    return ChainVerification(
        checked=checked, end=last, since=since + 1, flaw=flaw, number=number
    )


def truncate_page() -> int:
    """Delete a page of truncated entries; return how many.

    Only what a valid entry declares as truncated is deleted; the database rejects the rest.
    """
    through = _truncation_point().number
    with transaction.atomic(), connection.cursor() as cursor:
        AuditHead.objects.filter(pk=AuditHead.ONLY, cut__lt=through).update(cut=through)
        first = AuditEntry.objects.order_by("number").values_list("number", flat=True).first()
        last_number = min(through, (first or 0) + PAGE_SIZE - 1)
        table = connection.ops.quote_name(AuditEntry._meta.db_table)
        cursor.execute(f"DELETE FROM {table} WHERE number <= %s", [last_number])
        return cursor.rowcount


def _lock_head() -> AuditHead:
    for head in AuditHead.objects.select_for_update().filter(pk=AuditHead.ONLY):
        return head
    last = AuditEntry.objects.order_by("-number").first()
    fields = {"number": last.number, "seal": last.seal} if last else {}
    new = AuditHead(pk=AuditHead.ONLY, **fields)
    AuditHead.objects.bulk_create([new], ignore_conflicts=True)
    return AuditHead.objects.select_for_update().get(pk=AuditHead.ONLY)


def _truncation_point() -> Anchor:
    """Return where the chain starts, as declared by a valid truncation entry."""
    for link in _links(AuditEntry.objects.filter(action=LOG_TRUNCATED).order_by("-number")[:1]):
        if link.is_valid:
            return Anchor(number=link.detail["through"], seal=link.detail["seal"])
    return Anchor(number=0, seal=GENESIS)


def _find_flaw(link: Link, last: Anchor) -> tuple[Flaw, int] | None:
    if link.number != last.number + 1:
        return Flaw.REMOVED, last.number + 1
    if link.key not in _keys():
        return Flaw.KEY_GONE, link.number
    if not link.is_valid:
        follows = AuditEntry.objects.filter(number=link.number + 1, previous=link.seal)
        return (Flaw.CHANGED if follows.exists() else Flaw.INSERTED), link.number
    # If only the newest entries are checked, the first one is trusted.
    return (Flaw.REWRITTEN, link.number) if last.seal not in ("", link.previous) else None


def _check_end(last: Anchor, end: Anchor, cut: Anchor | None = None) -> tuple[Flaw, int] | None:
    """Check that a known end of the chain is still where it was."""
    if end.number > last.number:
        return Flaw.TAIL_CUT, last.number + 1
    if not end.number or (cut and end.number < cut.number):
        return None
    if cut and end.number == cut.number:
        return None if end.seal == cut.seal else (Flaw.REWRITTEN, end.number)
    is_there = AuditEntry.objects.filter(number=end.number, seal=end.seal).exists()
    return None if is_there or end == last else (Flaw.REWRITTEN, end.number)


def _links_after(number: int) -> Iterator[Link]:
    """Yield entries a page at a time, so that writers never wait for readers."""
    rows = AuditEntry.objects.order_by("number")
    while page := list(_links(rows.filter(number__gt=number)[:PAGE_SIZE])):
        yield from page
        number = page[-1].number


def _links(rows: Any) -> Iterable[Link]:
    for columns in rows.values(*COLUMNS):
        yield Link(person=columns.pop("person__token"), **columns)


def _keys() -> dict[str, bytes]:
    return _derive_keys(tuple(settings.ENCRYPTION_KEYS))


@lru_cache(maxsize=8)
def _derive_keys(phrases: tuple[str, ...]) -> dict[str, bytes]:
    """Return keys by name; the first one seals, the others only verify."""
    keys = {}
    for phrase in phrases:
        # With its own context, because the phrase also encrypts and may sign other things.
        kdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"audit chain")
        key = kdf.derive(phrase.encode())
        keys[hashlib.sha256(key).hexdigest()[:8]] = key
    return keys
