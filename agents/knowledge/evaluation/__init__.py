"""Measures search with a set of questions: how often and how high the right document is found.

The set in this folder is about an invented company, in English and Japanese.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from agents.tools.search import SearchResult

from ..retrieval import find
from ..retrieval.finder import Mode
from ..scope import Scope

OWN_SET = Path(__file__).parent
CUTOFFS = (1, 3, 5, 10)
DEPTH = 10


class BadSet(ValueError):
    """Raised with a sentence when a set can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the documents that answer it; none if it can't be answered."""

    id: str
    kind: str
    text: str
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The rank of the first right document, and how certain the search was."""

    question: Question
    rank: int | None
    certainty: float


def read_questions(path: Path) -> list[Question]:
    """Read a JSONL file with id, kind, question and documents."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadSet(f"Can't read {str(path)!r}: {error.strerror}.") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found.append(_question(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                raise BadSet(f"Line {number} of {path} isn't a question.") from error
    return found


def _question(row: dict[str, object]) -> Question:
    documents = row.get("documents") or ()
    if not isinstance(documents, (list, tuple)):
        raise TypeError
    return Question(
        id=str(row["id"]),
        kind=str(row.get("kind", "question")),
        text=str(row["question"]),
        documents=tuple(map(str, documents)),
    )


def ask(questions: Iterable[Question], scope: Scope, mode: Mode) -> Iterator[Outcome]:
    """Ask all questions in one mode."""
    for question in questions:
        result = find(question.text, DEPTH * 2, scope=scope, mode=mode, minimum=0)
        yield Outcome(
            question=question, rank=_rank(question, result), certainty=result.certainty
        )


def _rank(question: Question, result: SearchResult) -> int | None:
    """Return the rank among the documents found; several passages of one count once."""
    paths = dict.fromkeys(hit.path for hit in result.candidates)
    for rank, path in enumerate(list(paths)[:DEPTH], start=1):
        if any(path.endswith(name) for name in question.documents):
            return rank
    return None


def recall(outcomes: Sequence[Outcome], cutoff: int) -> float:
    return mean(one.rank is not None and one.rank <= cutoff for one in outcomes)


def reciprocal_rank(outcomes: Sequence[Outcome]) -> float:
    return mean(1 / one.rank if one.rank else 0.0 for one in outcomes)


def separation(answerable: Sequence[Outcome], others: Sequence[Outcome]) -> float:
    """Return the area under the curve: how well the certainty tells the two apart."""
    pairs = [(one.certainty, other.certainty) for one in answerable for other in others]
    return mean((one > other) + 0.5 * (one == other) for one, other in pairs)
