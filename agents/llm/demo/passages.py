"""Answers from search results, with their sources."""

import re

from agents.engine.material import Passage, parse_passages
from agents.engine.text import HIRAGANA, KANJI, loose_terms

from .conversation import LIBRARY, Question

MAX_PASSAGES = 2
MAX_QUOTED = 900  # characters of one passage
_BLOCK = re.compile(r"^```.*?^```|(?:^(?!```|#).+\n?)+", re.MULTILINE | re.DOTALL)
_STEM = re.compile(f"(?<![{KANJI}])[{KANJI}][{HIRAGANA}]")
_COMMON = frozenset(LIBRARY["words"]["common"].split())
_COURTESY = re.compile(LIBRARY["words"]["courtesy"], re.IGNORECASE)


def search_query(text: str) -> str:
    return _COURTESY.sub("", text.strip()).rstrip(" ?？。.!！") or text.strip()


def quote(observation: str, question: Question, min_share: float = 0.4) -> str:
    """Quote passages that share enough words with the question; empty if none does."""
    terms = terms_of(question.plain)
    enough = max(min(2, len(terms)), min_share * len(terms), 1)
    passages = [passage for passage in parse_passages(observation) if passage.text]
    fitting = [p for p in passages if len(terms & terms_of(f"{p.title} {p.text}")) >= enough]
    if len(terms) == 1:  # a single word may be chance, unless it is in the heading
        fitting = [passage for passage in fitting if terms & terms_of(passage.title)]
    same_language = [p for p in fitting if Question(p.text).is_japanese == question.is_japanese]
    fitting = same_language or fitting
    best = max((_score(passage, terms) for passage in fitting), default=0)
    close = [passage for passage in fitting if _score(passage, terms) >= 0.7 * best]
    close.sort(key=lambda passage: -_score(passage, terms))
    quotes = list[str]()
    for passage in close[:MAX_PASSAGES]:
        blocks = [block.strip() for block in _BLOCK.findall(passage.text)]
        # A heading with the same question is answered by the text below it, from its start.
        if 2 * len(terms & terms_of(passage.title)) < len(terms):
            blocks = [block for block in blocks if terms & terms_of(block)] or blocks
        quoted = blocks[0]
        for block in blocks[1:]:
            quoted += f"\n\n{block}" if len(quoted) + len(block) < MAX_QUOTED else ""
        space = "\n\n" if quoted.endswith("```") else " "
        quotes.append(f"{quoted}{space}[{passage.number}]")
    return "\n\n".join(quotes)  # the sources are listed below the answer


def _score(passage: Passage, terms: frozenset[str]) -> int:
    """Count shared words; those in the heading count twice."""
    heading = terms & terms_of(passage.title)
    text = terms & terms_of(passage.text)
    return len(heading) + len(heading | text)


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of English words and pairs of Japanese characters."""
    return loose_terms(text, _COMMON).union(_STEM.findall(text))
