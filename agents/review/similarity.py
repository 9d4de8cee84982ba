"""How alike two texts are: by words where they are written apart, else by characters."""

import re
from collections import Counter
from difflib import SequenceMatcher

from agents.knowledge.tokenizer import CJK, normalize

WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:[.,][^\W{CJK}]+)*")
# Beyond this, order is left out of account: to follow it would take too long.
MAX_ORDERED_WORDS = 3_000


def text_similarity(one: str, other: str) -> float:
    """From 0 to 1; 1 also where only width, capitals, spaces and marks differ."""
    first, second = tokenize(one), tokenize(other)
    if first == second:
        return 1.0 if first or one.strip() == other.strip() else 0.0
    if max(len(first), len(second)) > MAX_ORDERED_WORDS:
        return overlap(first, second)
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def tokenize(text: str) -> list[str]:
    return WORD.findall(normalize(text))


def overlap(first: list, second: list) -> float:
    """How much of both is in both, however often and in whatever order."""
    both = sum((Counter(first) & Counter(second)).values())
    return 2 * both / (len(first) + len(second)) if first or second else 1.0
