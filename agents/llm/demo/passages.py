"""Answers from search results, with their sources."""

import re
from typing import NamedTuple

from agents.engine.text import HIRAGANA, KANJI, KATAKANA, bigrams

from .conversation import LIBRARY, Question

MAX_PASSAGES = 2
MAX_QUOTED = 900  # characters of one passage
_HEAD = re.compile(r"^\[(\d{1,3})\] (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```.*?^```|(?:^(?!```|#).+\n?)+", re.MULTILINE | re.DOTALL)
_RUN = re.compile(f"[{KATAKANA}{KANJI}]{{2,}}")
_STEM = re.compile(f"(?<![{KANJI}])[{KANJI}][{HIRAGANA}]")
_COMMON = frozenset(LIBRARY["words"]["common"].split())
_COURTESY = re.compile(LIBRARY["words"]["courtesy"], re.IGNORECASE)


class FoundPassage(NamedTuple):
    """A passage and its citation number."""

    number: str
    source: str
    text: str

    def score(self, terms: frozenset[str]) -> int:
        """Count shared words; those in the heading count twice."""
        heading, text = terms & terms_of(self.source), terms & terms_of(self.text)
        return len(heading) + len(heading | text)

    def quote(self, terms: frozenset[str]) -> str:
        """Return the first relevant blocks, with the passage's number."""
        blocks = [block.strip() for block in _BLOCK.findall(self.text)]
        # A heading with the same question is answered by the text below it, from its start.
        if 2 * len(terms & terms_of(self.source)) < len(terms):
            blocks = [block for block in blocks if terms & terms_of(block)] or blocks
        quoted = blocks[0]
        for block in blocks[1:]:
            quoted += f"\n\n{block}" if len(quoted) + len(block) < MAX_QUOTED else ""
        space = "\n\n" if quoted.endswith("```") else " "
        return f"{quoted}{space}[{self.number}]"


def parse(text: str) -> list[FoundPassage]:
    """Parse a search result: `[1] Title › Heading (source #1)`, then the text."""
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    found = zip(heads, ends, strict=True)
    return [FoundPassage(h[1], h[2].strip(), text[h.end() : end].strip()) for h, end in found]


def search_query(text: str) -> str:
    return _COURTESY.sub("", text.strip()).rstrip(" ?？。.!！") or text.strip()


def quote(observation: str, question: Question, least: float = 0.4) -> str:
    """Quote passages that share enough words with the question; empty if none does."""
    terms = terms_of(question.plain)
    enough = max(min(2, len(terms)), least * len(terms), 1)
    passages = [passage for passage in parse(observation) if passage.text]
    found = [p for p in passages if len(terms & terms_of(f"{p.source} {p.text}")) >= enough]
    if len(terms) == 1:  # a single word may be chance, unless it is in the heading
        found = [passage for passage in found if terms & terms_of(passage.source)]
    own = [p for p in found if Question(p.text).is_japanese == question.is_japanese]
    found = own or found
    best = max((passage.score(terms) for passage in found), default=0)
    close = [passage for passage in found if passage.score(terms) >= 0.7 * best]
    fitting = sorted(close, key=lambda passage: -passage.score(terms))[:MAX_PASSAGES]
    # The sources are listed below the answer.
    return "\n\n".join(passage.quote(terms) for passage in fitting)


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of English words and pairs of Japanese characters."""
    text = text.lower()
    words = (word for word in re.findall(r"[a-z0-9_]{3,}", text) if word not in _COMMON)
    pairs = (pair for run in _RUN.findall(text) for pair in bigrams(run))
    return frozenset([*(word.rstrip("s")[:6] for word in words), *pairs, *_STEM.findall(text)])
