"""Who can read a collection: everyone, groups, and people by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import Signal
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.db.sanitize import sanitize_text
from agents.models import Collection, CollectionAcceptance, CollectionShare
from agents.models.catalog.rights import Role, group_label
from agents.models.sharing.collections import MANAGE_PERMISSION

from . import events

MAX_PEOPLE = 200
# Sent with `collection`, `person` and `by` when a collection is shared with a user by name.
shared = Signal()

ACCESS_LEVELS = {"read": gettext_lazy("Can view"), "write": gettext_lazy("Can edit")}


class SharingRejected(Exception):
    """Raised when access isn't granted; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChoice:
    """A group that the user can share with, or that has access already."""

    pk: int
    label: str
    has_access: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPanel:
    """Who has access, and what the viewer can change."""

    is_manager: bool
    may_open: bool  # to everyone
    shares: QuerySet[CollectionShare]
    groups: list[GroupChoice]
    rights: dict[str, Any]


def build_panel(collection: Collection, user: User) -> AccessPanel:
    is_manager = Collection.objects.managed_by(user).filter(pk=collection.pk).exists()
    chosen = set(collection.groups.values_list("pk", flat=True))
    offered = sharable_groups(user) if is_manager else Group.objects.none()
    groups = (offered | Group.objects.filter(pk__in=chosen)).distinct().order_by("name")
    return AccessPanel(
        is_manager=is_manager,
        may_open=is_manager and user.has_perm(MANAGE_PERMISSION),
        shares=collection.shares.select_related("user__profile").order_by("user__username"),
        groups=[
            GroupChoice(
                pk=group.pk, label=str(group_label(group)), has_access=group.pk in chosen
            )
            for group in groups
        ],
        rights=ACCESS_LEVELS,
    )


def sharable_groups(user: User) -> QuerySet[Group]:
    """Return the user's own groups; all of them for administrators. A role is no group here."""
    groups = Group.objects.exclude(name__in=Role.values)
    return groups if user.has_perm(MANAGE_PERMISSION) else groups.filter(user=user)


@transaction.atomic
def add_person(collection: Collection, by: User, name: str, right: str) -> None:
    """Share with a user by name, or change their access."""
    name = sanitize_text(name).strip()
    person = get_user_model().objects.filter(username=name, is_active=True).first()
    if right not in ACCESS_LEVELS:
        raise SharingRejected(_("Choose a permission."))
    if person is None:
        raise SharingRejected(_("No user is named “%(name)s”.") % {"name": name[:150]})
    if person.pk == collection.owner_id:
        raise SharingRejected(_("This user already owns the collection."))
    if collection.shares.exclude(user=person).count() >= MAX_PEOPLE:
        raise SharingRejected(
            _(
                "This collection is already shared with %(most)d users, the limit. Share it "
                "with a group instead."
            )
            % {"most": MAX_PEOPLE}
        )
    _share, is_new = collection.shares.update_or_create(
        user=person, defaults={"may_edit": right == "write"}
    )
    if by.has_perm(MANAGE_PERMISSION):
        collection.acceptances.get_or_create(user=person)
    _record(collection, by, who=audit.person(person), right=right)
    if is_new:
        shared.send(Collection, collection=collection, person=person, by=by)


@transaction.atomic
def remove_person(collection: Collection, by: User, user: int) -> None:
    """End a user's access; raise CollectionShare.DoesNotExist if they have none."""
    share = collection.shares.select_related("user").get(user=user)
    share.delete()
    # Shared again, it is for them to decide again.
    collection.acceptances.filter(user=user).delete()
    _record(collection, by, who=audit.person(share.user), right="none")


@transaction.atomic
def set_readers(collection: Collection, by: User, groups: Iterable[int], is_open: bool) -> None:
    """Choose the groups and whether everyone can read it."""
    if is_open != collection.is_open and not by.has_perm(MANAGE_PERMISSION):
        raise SharingRejected(_("Only administrators can share with everyone."))
    offered = set(sharable_groups(by).values_list("pk", flat=True))
    old_groups = set(collection.groups.values_list("pk", flat=True))
    # Groups that another administrator chose stay unless they are unchecked.
    new_groups = set(groups) & (offered | old_groups)
    if new_groups == old_groups and is_open == collection.is_open:
        return
    collection.groups.set(new_groups)
    collection.acceptances.filter(group__in=old_groups - new_groups).delete()
    if by.has_perm(MANAGE_PERMISSION):
        CollectionAcceptance.objects.bulk_create(
            CollectionAcceptance(collection=collection, group_id=group)
            for group in new_groups - old_groups
        )
    Collection.objects.filter(pk=collection.pk).update(is_open=is_open)
    collection.is_open = is_open
    if not is_open:
        # Shared again, it is for those who lost access to decide again.
        by_users = collection.acceptances.exclude(user=None)
        lost = by_users.exclude(user__in=collection.shares.values("user"))
        lost.exclude(user__groups__in=new_groups).delete()
    names = [str(group_label(group)) for group in collection.groups.order_by("name")]
    _record(collection, by, everyone=is_open, groups=names)


def accept(collection: Collection, user: User, *, is_accepted: bool) -> None:
    """Search a shared collection for this user from now on, or dismiss it."""
    collection.acceptances.update_or_create(user=user, defaults={"is_accepted": is_accepted})


def _record(collection: Collection, by: User, **details: Any) -> None:
    events.access_changed(collection)
    if collection.owner_id is None:  # a personal name stays out of the log
        details["name"] = collection.name
    audit.record(by, audit.COLLECTION_SHARED, collection, **details)
