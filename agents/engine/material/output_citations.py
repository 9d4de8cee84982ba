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
            items = []
            for item in value:
                number = _field_number(item) if is_citing else None
                if number is None:
                    items.append(check(item, is_citing=is_citing))
                elif is_known(number):
                    items.append(item)
                else:
                    removed[number] = None
            return items
        if not isinstance(value, str):
            return value
        checked = check_text(value)
        removed.update(dict.fromkeys(checked.removed))
        return checked.text

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
        for citation in CITATION.finditer(value):
            yield from cited_numbers(citation)


def _field_number(value: Any) -> int | None:
    """Return the passage that an item of a field with sources stands for."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match[1]) if match else None
