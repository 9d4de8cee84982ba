"""Values of a document that must have a certain type."""

from collections.abc import Mapping
from typing import Any

from .errors import BadDocument


def require_object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadDocument(f"{place!r} must be an object.")
    return value


def list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
