"""Reads values from outside, whose shape isn't guaranteed."""

from collections.abc import Mapping
from typing import Any

# Concrete types first: an abstract check costs ten times as much, on every chunk.
MAPPING_TYPES = (dict, Mapping)
LIST_TYPES = (list, tuple)


def text_or_empty(value: Any) -> str:
    """Return the value if it is text, else an empty string."""
    return value if isinstance(value, str) else ""


def as_list(value: Any) -> list[Any] | tuple[Any, ...]:
    """Return the items of a list; a bare object counts as a list of one."""
    if not value:
        return ()
    if isinstance(value, MAPPING_TYPES):
        return [value]
    return value if isinstance(value, LIST_TYPES) else ()


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list, ignoring other items."""
    return [item for item in as_list(value) if isinstance(item, MAPPING_TYPES)]
