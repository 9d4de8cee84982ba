"""Who can export and import a file."""

from typing import Any, TypeAlias

from django.contrib.auth.models import User

from agents.models.types import AnyUser


class TerminalUser:
    """The terminal's user, who has the database anyway and so has all permissions."""

    pk = None
    is_authenticated = False
    is_superuser = True

    def has_perm(self, permission: str) -> bool:
        return True


ConfigUser: TypeAlias = AnyUser | TerminalUser


def user_or_none(user: ConfigUser) -> User | None:
    """Return the user's row, or None for the terminal."""
    return user if isinstance(user, User) and user.pk else None


def has_model_perm(user: ConfigUser, verb: str, model: Any) -> bool:
    return user.has_perm(f"{model._meta.app_label}.{verb}_{model._meta.model_name}")


def can_read(user: ConfigUser, model: Any) -> bool:
    return has_model_perm(user, "view", model) or has_model_perm(user, "change", model)
