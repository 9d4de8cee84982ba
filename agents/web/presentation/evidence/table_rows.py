"""Finds the rows of a cited table that a statement is about."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from agents.engine.material import CITATION
from agents.engine.material.citations import cited_numbers

from .annotator import SENTENCE_END
from .figures import figures_in, half_width
from .source_index import terms_of

# More rows than this are what the whole passage is about.
MAX_CITED_ROWS = 3
MAX_STATEMENTS = 20
MAX_STATEMENT_CHARS = 1_000
CLOSE = 0.8  # of the best score: a sentence can compare rows
MIN_SCORE = 0.5  # one word or figure that at most two rows have
ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
DELIMITER = re.compile(r"[ \t]*\|[ \t:|-]*-[ \t:|-]*")


def statements_citing(answer: str, number: int) -> list[str]:
    """Return the sentences of an answer that cite this passage, without their citations."""
    found: list[str] = []
    before, start = "", 0
    for end in [*(one.end() for one in SENTENCE_END.finditer(answer)), len(answer)]:
        sentence, start = answer[start:end], end
        citations = list(CITATION.finditer(half_width(sentence)))
        plain = CITATION.sub(" ", half_width(sentence)).strip()
        if any(number in cited_numbers(one) for one in citations):
            found.append((plain if terms_of(plain) else before)[:MAX_STATEMENT_CHARS])
        before = plain or before
    return found[:MAX_STATEMENTS]


def cited_rows(text: str, statements: Iterable[str]) -> list[int]:
    """Return where in a passage the rows begin that the statements match best, if few do."""
    rows = {start: _signs(line) for start, line in _rows(text)}
    if len(rows) < 2:
        return []
    frequency = Counter(sign for signs in rows.values() for sign in signs)
    found: set[int] = set()
    for statement in statements:
        wanted = _signs(statement)
        scores = {
            start: sum(1 / frequency[sign] for sign in wanted & signs)
            for start, signs in rows.items()
        }
        best = max(scores.values())
        close = [start for start, score in scores.items() if score >= CLOSE * best]
        if best >= MIN_SCORE and len(close) <= MAX_CITED_ROWS and len(close) < len(rows):
            found.update(close)
    return sorted(found)


def _rows(text: str) -> Iterator[tuple[int, str]]:
    """Yield the rows of tables without their heads."""
    lines = [(row.start(), row[0]) for row in ROW.finditer(text)]
    rules = {at for at, (_, line) in enumerate(lines) if DELIMITER.fullmatch(line)}
    for at, row in enumerate(lines):
        if at not in rules and at + 1 not in rules:
            yield row


def _signs(text: str) -> frozenset[Hashable]:
    """Return the words and figures of a text."""
    return frozenset((*terms_of(text), *(figure.value for figure in figures_in(text))))
