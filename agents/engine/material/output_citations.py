"""Citations in structured answers: [1] in texts, and numbers in fields such as `sources`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .citations import CITATION, CitationCheck, cited_numbers

# Only these names: a number elsewhere, such as in `source_id`, can mean anything.
_CITING_FIELD = re.compile(r"(?:citation|source|reference)s?|出典|引用", re.IGNORECASE)
_NUMBER = re.compile(r"\[?(\d{1,3})\]?")

TextCheck = Callable[[str], CitationCheck]
_REMOVED = object()


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """A value with only valid citations, and the numbers that were removed."""

    value: Any
    removed: tuple[int, ...] = ()


def check_output_citations(
    value: Any, is_known: Callable[[int], bool], check_text: TextCheck, *, fields: bool = True
) -> OutputCheck:
    """Remove citations that no source has; without `fields` only those in texts."""
    removed: dict[int, None] = {}

    def check(value: Any, *, is_citing: bool) -> Any:
        if isinstance(value, dict):
            return {
                key: check(item, is_citing=fields and bool(_CITING_FIELD.fullmatch(key)))
                for key, item in value.items()
            }
        if isinstance(value, list):
            items = [_checked_item(item, is_citing) for item in value]
            return [item for item in items if item is not _REMOVED]
        if not isinstance(value, str):
            return value
        checked = check_text(value)
        removed.update(dict.fromkeys(checked.removed))
        return checked.text

    def _checked_item(item: Any, is_citing: bool) -> Any:
        number = _field_number(item) if is_citing else None
        if number is not None and not is_known(number):
            removed[number] = None
            return _REMOVED
        return item if number is not None else check(item, is_citing=is_citing)

    return OutputCheck(check(value, is_citing=False), tuple(removed))


def output_numbers(value: Any, *, is_citing: bool = False) -> Iterator[int]:
    """Yield the numbers that a structured answer cites."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from output_numbers(item, is_citing=bool(_CITING_FIELD.fullmatch(key)))
    elif isinstance(value, list):
        for item in value:
            yield from output_numbers(item, is_citing=is_citing)
    elif is_citing and (number := _field_number(value)) is not None:
        yield number
    elif isinstance(value, str):
        for found in CITATION.finditer(value):
            yield from cited_numbers(found)


def _field_number(value: Any) -> int | None:
    """Return the passage that an item of a field with sources stands for."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(found[1]) if found else None
