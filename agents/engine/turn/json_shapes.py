"""Values from outside, whose shape nobody has promised."""

from collections.abc import Mapping
from typing import Any

# The plain types first: asking an abstract one costs ten times as much, on every chunk.
MAPPING_TYPES = (dict, Mapping)
LIST_TYPES = (list, tuple)


def text_or_empty(value: Any) -> str:
    """The value where it is text, else none."""
    return value if isinstance(value, str) else ""


def as_list(value: Any) -> list[Any] | tuple[Any, ...]:
    """The items of a list; an object alone stands for a list of one."""
    if not value:
        return ()
    if isinstance(value, MAPPING_TYPES):
        return [value]
    return value if isinstance(value, LIST_TYPES) else ()


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a list, whatever else is in it."""
    return [item for item in as_list(value) if isinstance(item, MAPPING_TYPES)]
