"""Suggests the name that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from .sentences import Sentence as _

# A comparison is quadratic in their length, and the author of a plan can cause many.
MAX_COMPARED_NAMES = 20
MAX_COMPARED_CHARS = 32
MAX_LENGTH_DIFFERENCE = 3


def closest_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is most like this name, if any is close."""
    if len(name) > MAX_COMPARED_CHARS:
        return None
    similar = (c for c in candidates if abs(len(c) - len(name)) <= MAX_LENGTH_DIFFERENCE)
    return next(iter(get_close_matches(name, islice(similar, MAX_COMPARED_NAMES), n=1)), None)


def suggest(sentence: str, name: str | None) -> str:
    """Add the name that was probably meant to a sentence about a wrong one."""
    return (
        _("%(sentence)s Did you mean %(name)s?", sentence=sentence, name=repr(name))
        if name
        else sentence
    )
