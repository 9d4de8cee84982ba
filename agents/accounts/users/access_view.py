"""What a user can open, and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from agents.models import Agent, Collection, ToolRegistration
from agents.models.catalog.rights import group_label

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
    own_pks = {group.pk for group in user.groups.all()}
    opened = []
    for kind in LIMITED:
        rows: QuerySet[Any] = kind.objects.filter(groups__isnull=False).distinct()
        for row in rows.prefetch_related("groups"):
            allowed = list(row.groups.all())
            shared = [group for group in allowed if group.pk in own_pks]
            is_open = True
            if user.is_superuser:
                reason = _("Superusers can use everything.")
            elif shared:
                reason = _("Member of %(names)s.") % {"names": _names(shared)}
            else:
                is_open = False
                reason = _("Only for %(names)s.") % {"names": _names(allowed)}
            opened.append(_opened(row, is_open, reason))
    collections = Collection.objects.library().filter(
        owner=None, is_open=False, deleted_at=None
    )
    for collection in collections.prefetch_related("groups"):
        shared = [group for group in collection.groups.all() if group.pk in own_pks]
        is_open = True
        if shared:
            reason = _("Member of %(names)s.") % {"names": _names(shared)}
        elif user.has_perm("agents.change_collection"):
            reason = _("Manages the installation's documents.")
        else:
            is_open = False
            names = _names(collection.groups.all())
            reason = _("Only for %(names)s.") % {"names": names} if names else _("Not shared.")
        opened.append(_opened(collection, is_open, reason))
    return opened


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
