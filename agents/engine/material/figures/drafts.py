"""Reads an answer in Markdown: which of its figures and names no result has."""

import re
from collections.abc import Iterator, Sequence

from ..citations import CITATION
from .index import FigureIndex
from .operands import Operand
from .parsing import half_width
from .reader import FigureReader, Finding, Status

MAX_DRAFT_CHARS = 40_000
MAX_RESULT_CHARS = 20_000  # of one result
MAX_RESULTS_CHARS = 100_000
MAX_LISTED = 20
# The point of an initial or a title ends no sentence.
_NO_END = r"(?<![ (][A-Z]\.)(?<!Dr\.)(?<!Mr\.)(?<!Ms\.)(?<!Mrs\.)"
SENTENCE_END = re.compile(rf"(?<=[.!?]){_NO_END}[)\]\"'”’]*\s+|(?<=[。！？])[」』）]*|\n+")
# Code, links and marks, which no figure is in.
_SKIPPED = re.compile(
    r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)|`[^`\n]{1,2000}`|\]\([^)\n]{0,2000}\)"
    r"|https?://[^\s<>()「」（）、。]{1,2000}|\*\*|__|\[(?=[^\]\n]{1,200}\]\()",
    re.MULTILINE | re.DOTALL,
)
_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"^#{1,6} +")
_DELIMITER = re.compile(r"[ \t]*\|[ \t:|-]*-[ \t:|-]*")


def unsupported_figures(draft: str, results: Sequence[str], known: str) -> list[str]:
    """Return the figures and names of a draft that neither results nor `known` texts have.

    If not everything can be compared, there are none.
    """
    is_long = sum(map(len, results)) > MAX_RESULTS_CHARS or len(draft) > MAX_DRAFT_CHARS
    if not results or is_long or any(len(result) > MAX_RESULT_CHARS for result in results):
        return []
    index = FigureIndex(results, known=known)
    if index.is_full:
        return []
    text = CITATION.sub(" ", _SKIPPED.sub(" ", half_width(draft)))
    reader = FigureReader(index, _item_counts(text))
    unsupported: dict[str, None] = {}
    heading = ""
    row_heads: list[str] = []
    for line in text.split("\n"):
        if not line.strip() or _DELIMITER.fullmatch(line):
            continue
        if _HEADING.match(line):
            heading = _HEADING.sub("", line)
            continue
        if line.lstrip().startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not row_heads:
                row_heads = cells
                continue
            row: list[Operand] = []
            for position, cell in enumerate(cells):
                head = row_heads[position] if position < len(row_heads) else ""
                around = f"{heading} {head} {cells[0]}"
                findings = reader.read(cell, around, row, head)
                unsupported |= _texts(cell, findings)
                row += reader.operands
            continue
        row_heads = []
        statement = _ITEM.sub("", line)
        for sentence in _sentences(statement):
            findings = reader.read(sentence, f"{heading} {statement[:400]}")
            if not sentence.rstrip().endswith(("?", "？")):
                findings += reader.names(sentence)
                unsupported |= _texts(sentence, findings)
    return list(unsupported)[:MAX_LISTED]


def _texts(sentence: str, findings: Sequence[Finding]) -> dict[str, None]:
    return dict.fromkeys(
        sentence[finding.start : finding.end]
        for finding in findings
        if finding.status is Status.UNSUPPORTED
    )


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for match in SENTENCE_END.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _item_counts(text: str) -> frozenset[int]:
    """Return how many items the lists have, and how many rows the tables."""
    counts: set[int] = set()
    items = rows = 0
    for line in [*text.split("\n"), "."]:
        if _ITEM.match(line):
            items += 1
        elif line.lstrip().startswith("|"):
            rows += not _DELIMITER.fullmatch(line)
        elif line.strip() and not line.startswith((" ", "\t")):
            counts |= {items, max(0, rows - 1)}
            items = rows = 0
    return frozenset(counts - {0})
