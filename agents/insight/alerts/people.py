"""Who can be chosen for a channel."""

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet


def selectable_people() -> QuerySet[User]:
    """Return the active users who can open the console."""
    return User.objects.filter(Q(is_staff=True) | Q(is_superuser=True), is_active=True)
