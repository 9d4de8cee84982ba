"""How alike two texts are: by words where they are written apart, else by characters."""

import re
from collections import Counter
from difflib import SequenceMatcher

from agents.knowledge.tokenizer import CJK, plain

WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:[.,][^\W{CJK}]+)*")
# Beyond this, order is left out of account: to follow it would take too long.
MOST_IN_ORDER = 3_000


def likeness(one: str, other: str) -> float:
    """From 0 to 1; 1 also where only width, capitals, spaces and marks differ."""
    first, second = words(one), words(other)
    if first == second:
        return 1.0 if first or one.strip() == other.strip() else 0.0
    if max(len(first), len(second)) > MOST_IN_ORDER:
        return shared(first, second)
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def words(text: str) -> list[str]:
    return WORD.findall(plain(text))


def shared(first: list, second: list) -> float:
    """How much of both is in both, however often and in whatever order."""
    both = sum((Counter(first) & Counter(second)).values())
    return 2 * both / (len(first) + len(second)) if first or second else 1.0
