"""English word stems and stop words, the same for questions, passages and memories."""

import re
from collections.abc import Container
from functools import lru_cache

from .scripts import KANJI, KATAKANA, bigrams

# The language of a document is told by them, too.
_STOP_WORDS = """
a about an and any are as at be been but by can could d did do does don for from get had has
have how i if in into is it its ll m may me my no not of on or our re s shall should so t tell
than that the their them then there these they this those to us ve was we were what when where
which who whom whose why will with would you your 何 方法 教 下 とは それは これは ですか
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
# The longest first.
_SUFFIXES = """
ization isation ational fulness iveness ousness ations ation ments ment ingly edly ness ings
ions ion ies ing ers ed er es ly s e y
"""
SUFFIXES = tuple(_SUFFIXES.split())
MIN_STEM = 3
_WORD = re.compile(r"[a-z0-9_]{3,}")
_JAPANESE_RUN = re.compile(f"[{KATAKANA}{KANJI}]{{2,}}")


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


def loose_terms(text: str, common_words: Container[str]) -> frozenset[str]:
    """Return beginnings of English words and pairs of Japanese characters.

    Unlike stems, they also find related words: analysis and analyze.
    """
    text = text.lower()
    words = (word.rstrip("s")[:6] for word in _WORD.findall(text) if word not in common_words)
    return frozenset(words).union(*map(bigrams, _JAPANESE_RUN.findall(text)))
