"""Who can export and import a file."""

from typing import Any


class TerminalUser:
    """The terminal's user, who has the database anyway and so has all permissions."""

    pk = None
    is_authenticated = False
    is_superuser = True

    def has_perm(self, permission: str) -> bool:
        return True


def user_or_none(user: Any) -> Any:
    """Return the user's row, or None for the terminal."""
    return user if user.pk else None


def has_model_perm(user: Any, verb: str, model: Any) -> bool:
    return user.has_perm(f"{model._meta.app_label}.{verb}_{model._meta.model_name}")


def can_read(user: Any, model: Any) -> bool:
    return has_model_perm(user, "view", model) or has_model_perm(user, "change", model)
