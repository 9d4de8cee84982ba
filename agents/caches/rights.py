"""What a person can use and read, as one value: a changed right is another cache key."""

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q

from agents.access import permissions
from agents.engine.result_cache import digest
from agents.models import Collection
from agents.models.collections import MANAGE_PERMISSION


def fingerprint(user_id: int | None) -> str:
    """Return a hash of a user's rights; empty if the user can't sign in or doesn't exist."""
    if user_id is None:
        return ""
    person = User.objects.filter(pk=user_id, is_active=True).first()
    if person is None:
        return ""
    groups = Group.objects.filter(user=user_id).order_by("pk")
    given = Permission.objects.filter(Q(user=user_id) | Q(group__user=user_id)).distinct()
    closed = permissions.restrictions_for(user_id)
    readable = Collection.objects.visible_to(
        user_id, is_manager=person.has_perm(MANAGE_PERMISSION)
    )
    return digest(
        {
            "user": user_id,
            "all": [person.is_superuser, person.is_staff],
            "groups": list(groups.values_list("pk", flat=True)),
            "permissions": sorted(given.values_list("pk", flat=True)),
            "closed": [sorted(closed.agents), sorted(closed.tools)],
            "collections": sorted(readable.values_list("pk", flat=True)),
        }
    )
