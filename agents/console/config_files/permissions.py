"""Who reads and takes over a file."""

from typing import Any


class Terminal:
    """Whoever has the terminal has the database as well, so nothing is refused to them."""

    pk = None
    is_authenticated = False
    is_superuser = True

    def has_perm(self, permission: str) -> bool:
        return True


def account(user: Any) -> Any:
    """The row of this person; None where there is none."""
    return user if user.pk else None


def may(user: Any, verb: str, model: Any) -> bool:
    return user.has_perm(f"{model._meta.app_label}.{verb}_{model._meta.model_name}")


def may_read(user: Any, model: Any) -> bool:
    return may(user, "view", model) or may(user, "change", model)
