"""English word stems, the same for questions and passages."""

from functools import lru_cache

SUFFIXES = (
    *("ization", "isation", "ational", "fulness", "iveness", "ousness"),
    *("ations", "ation", "ments", "ment", "ingly", "edly", "ness", "ings"),
    *("ions", "ion", "ies", "ing", "ers", "ed", "er", "es", "ly", "s", "e", "y"),
)
MIN_STEM = 3


@lru_cache(50_000)
def stem(word: str) -> str:
    """Return a word without its ending: settings, setting and set are close enough."""
    if not word.isascii() or not word.isalpha():
        return word
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= MIN_STEM:
            word = word[: -len(suffix)]
            break
    # stopped, stopping → stop
    return word[:-1] if len(word) > MIN_STEM and word[-1] == word[-2] != "s" else word
