"""Claims about a user: from the ID token, and from UserInfo where the token has none."""

from collections.abc import Mapping
from typing import Any

NAMES = ("preferred_username", "given_name", "family_name", "name")
EMAIL = ("email", "email_verified")


def find(claims: Mapping[str, Any], path: str) -> Any:
    """Return the claim of this name, or the one at a path such as `realm_access.roles`."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def missing(claims: Mapping[str, Any], groups_claim: str) -> list[str]:
    """Return what UserInfo should be asked for."""
    names = [] if "preferred_username" in claims else ["preferred_username"]
    if not any(name in claims for name in NAMES[1:]):
        names.append("name")
    names += [name for name in EMAIL if name not in claims]
    if groups_claim and find(claims, groups_claim) is None:
        names.append(groups_claim)
    return names


def merge(
    claims: dict[str, Any], user_info: Mapping[str, Any], groups_claim: str
) -> dict[str, Any]:
    """Return the ID token's claims, completed by UserInfo's names, address and groups.

    Nothing else is taken over: how the user signed in (`acr`, `amr`) must be signed.
    """
    names = {name: user_info[name] for name in NAMES if name in user_info}
    merged = names | claims
    # An address and whether it is verified belong together, so both have one source.
    if not all(name in claims for name in EMAIL) and user_info.get("email"):
        merged |= {name: user_info.get(name) for name in EMAIL}
    if groups_claim and find(claims, groups_claim) is None:
        groups_value = find(user_info, groups_claim)
        merged |= {} if groups_value is None else {groups_claim: groups_value}
    return merged


def groups(claims: Mapping[str, Any], groups_claim: str) -> set[str]:
    """Return the user's groups, sent as a list, as one text or as the keys of an object."""
    value = find(claims, groups_claim)
    if isinstance(value, list | dict):
        return {str(name) for name in value}
    return set() if value is None else {str(value)}
