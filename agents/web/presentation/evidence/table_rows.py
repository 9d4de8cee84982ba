"""Finds the rows of a cited table that a statement is about."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from agents.engine.material import CITATION
from agents.engine.material.citations import cited_numbers
from agents.engine.material.figures import SENTENCE_END, figures_in, half_width

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
    statements: list[str] = []
    previous = ""
    start = 0
    for end in [*(match.end() for match in SENTENCE_END.finditer(answer)), len(answer)]:
        sentence = answer[start:end]
        start = end
        citations = list(CITATION.finditer(half_width(sentence)))
        plain = CITATION.sub(" ", half_width(sentence)).strip()
        if any(number in cited_numbers(match) for match in citations):
            statements.append((plain if terms_of(plain) else previous)[:MAX_STATEMENT_CHARS])
        previous = plain or previous
    return statements[:MAX_STATEMENTS]


def cited_rows(text: str, statements: Iterable[str]) -> list[int]:
    """Return where in a passage the rows begin that the statements match best, if few do."""
    rows = {start: _terms(line) for start, line in _rows(text)}
    if len(rows) < 2:
        return []
    frequency = Counter(term for terms in rows.values() for term in terms)
    starts: set[int] = set()
    for statement in statements:
        statement_terms = _terms(statement)
        scores = {
            start: sum(1 / frequency[term] for term in statement_terms & terms)
            for start, terms in rows.items()
        }
        best = max(scores.values())
        close = [start for start, score in scores.items() if score >= CLOSE * best]
        if best >= MIN_SCORE and len(close) <= MAX_CITED_ROWS and len(close) < len(rows):
            starts.update(close)
    return sorted(starts)


def _rows(text: str) -> Iterator[tuple[int, str]]:
    """Yield the rows of tables without their heads."""
    lines = [(row.start(), row[0]) for row in ROW.finditer(text)]
    delimiters = {index for index, (_, line) in enumerate(lines) if DELIMITER.fullmatch(line)}
    for index, row in enumerate(lines):
        if index not in delimiters and index + 1 not in delimiters:
            yield row


def _terms(text: str) -> frozenset[Hashable]:
    """Return the words and figures of a text."""
    return frozenset((*terms_of(text), *(figure.value for figure in figures_in(text))))
