"""Suggests the name that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

# A comparison is quadratic in their length, and the author of a plan can cause many.
MAX_COMPARED_NAMES = 20
MAX_COMPARED_CHARS = 32
MAX_LENGTH_DIFFERENCE = 3


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like this one, if any is close."""
    if len(name) > MAX_COMPARED_CHARS:
        return None
    alike = (other for other in known if abs(len(other) - len(name)) <= MAX_LENGTH_DIFFERENCE)
    return next(iter(get_close_matches(name, islice(alike, MAX_COMPARED_NAMES), n=1)), None)


def suggest(sentence: str, name: str | None) -> str:
    """Add the name that was probably meant to a sentence about a wrong one."""
    return f"{sentence} Did you mean {name!r}?" if name else sentence
