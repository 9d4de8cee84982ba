"""Similarity of two texts: by words or, without spaces, by characters."""

import re
from collections import Counter
from difflib import SequenceMatcher

from agents.engine.text import CJK
from agents.knowledge.retrieval.tokenizer import normalize

WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:[.,][^\W{CJK}]+)*")
# Beyond this, order is ignored, because it would take too long.
MAX_ORDERED_WORDS = 3_000


def text_similarity(one: str, other: str) -> float:
    """Return 0 to 1; differences in width, case, spaces and punctuation are ignored."""
    first, second = tokenize(one), tokenize(other)
    if first == second:
        return 1.0 if first or one.strip() == other.strip() else 0.0
    if max(len(first), len(second)) > MAX_ORDERED_WORDS:
        return overlap(first, second)
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def tokenize(text: str) -> list[str]:
    return WORD.findall(normalize(text))


def overlap(first: list, second: list) -> float:
    """Return the share of common elements, regardless of order."""
    both = sum((Counter(first) & Counter(second)).values())
    return 2 * both / (len(first) + len(second)) if first or second else 1.0
