"""Similarity of two texts: by words or, without spaces, by characters."""

import re
from collections import Counter
from difflib import SequenceMatcher

from agents.engine.text import CJK
from agents.knowledge.retrieval.tokenizer import normalize

WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:[.,][^\W{CJK}]+)*")
# Beyond this, order is ignored, because it would take too long.
MAX_ORDERED_WORDS = 3_000


def text_similarity(first: str, second: str) -> float:
    """Return 0 to 1; differences in width, case, spaces and punctuation are ignored."""
    first_words = tokenize(first)
    second_words = tokenize(second)
    if first_words == second_words:
        return 1.0 if first_words or first.strip() == second.strip() else 0.0
    if max(len(first_words), len(second_words)) > MAX_ORDERED_WORDS:
        return overlap(first_words, second_words)
    return SequenceMatcher(None, first_words, second_words, autojunk=False).ratio()


def tokenize(text: str) -> list[str]:
    return WORD.findall(normalize(text))


def overlap(first: list, second: list) -> float:
    """Return the share of common elements, regardless of order."""
    common = (Counter(first) & Counter(second)).total()
    return 2 * common / (len(first) + len(second)) if first or second else 1.0
