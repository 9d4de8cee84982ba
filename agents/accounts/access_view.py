"""What a user or a group can open, and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from agents.models import Agent, Collection, ToolRegistration
from agents.models.rights import group_label

LIMITED = (Agent, ToolRegistration)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRow:
    """Something that is limited to groups, and whether this user can use it."""

    kind: str
    name: str
    url: str
    is_open: bool
    reason: str


def for_user(user: User) -> list[OpenedRow]:
    """Return everything that isn't for everybody, with the reason."""
    own_groups = {group.pk: group for group in user.groups.all()}
    found = [_limited(row, user, own_groups) for kind in LIMITED for row in _limited_rows(kind)]
    return [*found, *(_collection(row, user, own_groups) for row in _group_collections())]


def for_group(group: Group) -> list[OpenedRow]:
    """Return what only members of this group, and of others named with it, can use."""
    rows: list[Any] = [row for kind in LIMITED for row in kind.objects.filter(groups=group)]
    rows += Collection.objects.library().filter(groups=group, deleted_at=None)
    return [_opened(row, True, "") for row in rows]


def _limited_rows(kind: Any) -> Iterable[Any]:
    rows = kind.objects.filter(groups__isnull=False).distinct()
    return rows.prefetch_related("groups")


def _group_collections() -> Iterable[Collection]:
    rows = Collection.objects.library().filter(owner=None, is_open=False, deleted_at=None)
    return rows.prefetch_related("groups")


def _limited(row: Any, user: User, own_groups: dict[int, Group]) -> OpenedRow:
    allowed = list(row.groups.all())
    shared = [group for group in allowed if group.pk in own_groups]
    if user.is_superuser:
        return _opened(row, True, _("Superusers can use everything."))
    if shared:
        return _opened(row, True, _("Member of %(names)s.") % {"names": _names(shared)})
    return _opened(row, False, _("Only for %(names)s.") % {"names": _names(allowed)})


def _collection(collection: Collection, user: User, own_groups: dict[int, Group]) -> OpenedRow:
    shared = [group for group in collection.groups.all() if group.pk in own_groups]
    if shared:
        return _opened(collection, True, _("Member of %(names)s.") % {"names": _names(shared)})
    if user.has_perm("agents.change_collection"):
        return _opened(collection, True, _("Manages the installation's documents."))
    names = _names(collection.groups.all())
    reason = _("Only for %(names)s.") % {"names": names} if names else _("Not shared.")
    return _opened(collection, False, reason)


def _names(groups: Iterable[Group]) -> str:
    return _(", ").join(sorted(str(group_label(group)) for group in groups))


def _opened(row: Model, is_open: bool, reason: str) -> OpenedRow:
    meta = row._meta
    return OpenedRow(
        kind=capfirst(str(meta.verbose_name)),
        name=str(row),
        url=reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk]),
        is_open=is_open,
        reason=reason,
    )
