"""What a person can use and read, as one value: a changed right is another cache key."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet

from agents.access import permissions
from agents.db.compiled_queries import compiled_query
from agents.engine.result_cache import digest
from agents.models import Collection
from agents.models.sharing.collections import MANAGE_PERMISSION

MANAGE_CODENAME = MANAGE_PERMISSION.partition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """A user's rights: a hash of all, empty without an active account, and closed tools."""

    fingerprint: str = ""
    closed_tools: frozenset[int] = frozenset()


def read(user_id: int | None) -> Rights:
    """Return the rights that a user has now."""
    if user_id is None:
        return Rights()
    restrictions = permissions.restrictions_for(user_id)
    for is_superuser, is_staff in _active_user(user_id):
        granted = _permissions(user_id)
        is_manager = is_superuser or any(name == MANAGE_CODENAME for _pk, name in granted)
        readable = (_managed_collections if is_manager else _collections)(user_id)
        facts = {
            "user": user_id,
            "all": [is_superuser, is_staff],
            "groups": sorted(_groups(user_id)),
            "permissions": sorted(pk for pk, _name in granted),
            "closed": [sorted(restrictions.agents), sorted(restrictions.tools)],
            "collections": sorted(readable),
        }
        return Rights(fingerprint=digest(facts), closed_tools=restrictions.tools)
    return Rights(closed_tools=restrictions.tools)


def fingerprint(user_id: int | None) -> str:
    """Return a hash of a user's rights; empty if the user can't sign in or doesn't exist."""
    return read(user_id).fingerprint


@compiled_query
def _active_user(user: int) -> QuerySet[Any, tuple[bool, bool]]:
    users = User.objects.filter(pk=user, is_active=True)
    return users.values_list("is_superuser", "is_staff")


@compiled_query
def _groups(user: int) -> QuerySet[Any, int]:
    return Group.objects.filter(user=user).order_by().values_list("pk", flat=True)


@compiled_query
def _permissions(user: int) -> QuerySet[Any, tuple[int, str]]:
    granted = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return granted.order_by().distinct().values_list("pk", "codename")


@compiled_query
def _collections(user: int) -> QuerySet[Any, int]:
    rows = Collection.objects.searched_for(user, is_manager=False)
    return rows.order_by().values_list("pk", flat=True)


@compiled_query
def _managed_collections(user: int) -> QuerySet[Any, int]:
    rows = Collection.objects.searched_for(user, is_manager=True)
    return rows.order_by().values_list("pk", flat=True)
