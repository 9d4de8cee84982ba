"""The name under which users see each other."""

from agents.models.types import AnyUser


def display_name(user: AnyUser | None) -> str:
    """Return a user's display name, or the name they sign in with."""
    if user is None:
        return ""
    profile = getattr(user, "profile", None)
    return (profile.display_name if profile else "") or user.get_username()


def initials(name: str) -> str:
    """Return two letters, or one in scripts with wide characters."""
    return name[:2].upper() if name[:2].isascii() else name[:1]
