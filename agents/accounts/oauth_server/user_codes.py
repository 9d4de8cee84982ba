"""Codes that users type to allow a device."""

from agents.access.api_keys import digest_of


def user_code_digest(typed: str) -> str:
    """Return what is saved of a code, however it is typed."""
    return digest_of("".join(c for c in typed.upper() if c.isalnum()))
