"""What was deleted and can be restored for 30 days.

Each kind of row is registered once. The pages *Recently deleted*, Undo after a deletion, the
check of rights and the job that erases what is over follow from that. Most kinds are only
hidden (`SoftDelete`); configuration, to which many rows refer, is copied and deleted.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from agents.db.periodic import periodic
from agents.models.types import LazyText

KEPT_FOR = timedelta(days=30)
# Later than it can be restored, so that nothing half erased comes back.
ERASED_AFTER = timedelta(seconds=30)

kinds: dict[str, "Kind"] = {}


class CannotRestore(Exception):
    """Raised when a deleted row can't be restored; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A restored row: the page it is on, what to call it there, and what isn't as it was.

    Without a name, the page itself says enough.
    """

    url: str
    name: str = ""
    warnings: tuple[str, ...] = ()


class Kind:
    """Rows of one model that can be deleted and restored."""

    name: str  # in addresses
    label: LazyText
    plural: LazyText
    model: type[Model]
    is_console = False  # on the administrators' page instead of the user's own
    deleted_at = "deleted_at"
    deleted_by = "deleted_by"

    def is_open_to(self, user: User) -> bool:
        """Whether this user can delete rows of this kind at all."""
        return True

    def deleted(self) -> QuerySet[Any]:
        """Return the deleted rows."""
        return self.model._base_manager.exclude(deleted_at=None)

    def restorable_by(self, user: User) -> QuerySet[Any]:
        """Return the deleted rows that this user can restore, or delete for good."""
        raise NotImplementedError

    def period(self) -> timedelta:
        return KEPT_FOR

    def is_over(self, moment: datetime) -> Q:
        """Return the condition of rows that can't be restored any more."""
        return Q((f"{self.deleted_at}__lt", moment - self.period()))

    def title(self, row: Any) -> str:
        return str(row)

    def is_name_taken(self, row: Any) -> bool:
        """Whether it can't be restored under its own name."""
        return False

    def new_name(self, row: Any) -> str:
        """Return a name under which it can be restored; empty if it must have its own."""
        return ""

    def restore(self, row: Any, user: User, name: str = "") -> Restored:
        """Restore a row in the caller's transaction; raise CannotRestore."""
        raise NotImplementedError

    def erase(self, row: Any) -> None:
        """Delete a row for good, with what it has outside the database."""
        row.delete()

    def erase_now(self, row: Any, user: User) -> None:
        """Delete a row for good before it is over, because a user wants that."""
        self.erase(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRow:
    """A deleted row that a user can restore."""

    kind: Kind
    row: Any

    @property
    def key(self) -> str:
        return f"{self.kind.name}:{self.row.pk}"

    @property
    def title(self) -> str:
        return self.kind.title(self.row)

    @property
    def deleted_at(self) -> datetime:
        return getattr(self.row, self.kind.deleted_at)

    @property
    def deleted_by(self) -> User | None:
        return getattr(self.row, self.kind.deleted_by)

    @property
    def days_left(self) -> int:
        remaining = self.deleted_at + self.kind.period() - timezone.now()
        return math.ceil(remaining / timedelta(days=1))

    @property
    def is_name_taken(self) -> bool:
        return self.kind.is_name_taken(self.row)

    @property
    def new_name(self) -> str:
        return self.kind.new_name(self.row)


def register(kind: Kind) -> None:
    kinds[kind.name] = kind


def mark(rows: QuerySet[Any], user: User | None) -> int:
    """Hide rows of a `SoftDelete` model; return how many."""
    return rows.update(deleted_at=timezone.now(), deleted_by=user)


def unmark(row: Any, **columns: Any) -> None:
    """Show a row of a `SoftDelete` model again, with these columns changed."""
    rows = type(row)._base_manager.filter(pk=row.pk)
    rows.update(deleted_at=None, deleted_by=None, **columns)
    row.refresh_from_db()


def restorable(kind: Kind, user: User) -> QuerySet[Any]:
    """Return the deleted rows of a kind that this user can restore now."""
    if not kind.is_open_to(user):
        return kind.deleted().none()
    return kind.restorable_by(user).exclude(kind.is_over(timezone.now()))


def find(user: User, key: str) -> DeletedRow | None:
    """Return what this user can restore by its key, such as "chat:12"."""
    name, _colon, pk = key.rpartition(":")
    kind = kinds.get(name)
    if kind is None or not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        return None
    row = restorable(kind, user).filter(pk=int(pk)).first()
    return None if row is None else DeletedRow(kind=kind, row=row)


def newest(user: User, listed: Iterable[Kind]) -> list[tuple[Kind, int]]:
    """Return the kinds and ids of what a user can restore, the last deleted first."""
    entries = [
        (deleted_at, pk, kind)
        for kind in listed
        for deleted_at, pk in restorable(kind, user).values_list(kind.deleted_at, "pk")
    ]
    entries.sort(key=lambda entry: entry[:2], reverse=True)
    return [(kind, pk) for _deleted_at, pk, kind in entries]


def read(entries: Iterable[tuple[Kind, int]]) -> list[DeletedRow]:
    """Return the rows of a page of `newest`, in the same order."""
    entries = list(entries)
    rows: dict[tuple[Kind, int], Any] = {}
    for kind in {kind for kind, _pk in entries}:
        pks = [pk for of_kind, pk in entries if of_kind is kind]
        deleted = kind.deleted().filter(pk__in=pks).select_related(kind.deleted_by)
        rows |= {(kind, row.pk): row for row in deleted}
    return [DeletedRow(kind=entry[0], row=rows[entry]) for entry in entries if entry in rows]


def restore(user: User, key: str, name: str = "") -> Restored:
    """Restore what this user can restore; raise CannotRestore or ObjectDoesNotExist."""
    with transaction.atomic():
        deleted_row = find(user, key)
        if deleted_row is None:
            raise ObjectDoesNotExist
        # A second request waits here, and then finds nothing.
        locked = deleted_row.kind.deleted().select_for_update(of=("self",))
        row = locked.get(pk=deleted_row.row.pk)
        return deleted_row.kind.restore(row, user, name)


def has_due() -> bool:
    moment = timezone.now() - ERASED_AFTER
    return any(kind.deleted().filter(kind.is_over(moment)).exists() for kind in kinds.values())


@periodic("deleted rows", every=60, when=has_due)
def erase_due() -> int:
    """Erase what can't be restored any more; return how many rows that were."""
    count = 0
    moment = timezone.now() - ERASED_AFTER
    for kind in kinds.values():
        for row in list(kind.deleted().filter(kind.is_over(moment)).order_by("pk")):
            kind.erase(row)
            count += 1
    return count
