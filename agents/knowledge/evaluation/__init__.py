"""Measures search with a set of questions: how often and how high the right document is found.

The set in this folder is about an invented company, in English and Japanese.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from agents.engine.material import Passage
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
    questions: list[Question] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            documents = row.get("documents") or []
            if not isinstance(documents, list):
                raise TypeError
            question = Question(
                id=str(row["id"]),
                kind=str(row.get("kind", "question")),
                text=str(row["question"]),
                documents=tuple(map(str, documents)),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise BadSet(f"Line {number} of {path} isn't a question.") from error
        questions.append(question)
    return questions


def ask(
    questions: Iterable[Question],
    scope: Scope,
    mode: Mode,
    rerank: Callable[[str, SearchResult], Sequence[Passage]] | None = None,
) -> Iterator[Outcome]:
    """Ask all questions in one mode; `rerank` puts what was found in another order."""
    for question in questions:
        result = find(question.text, DEPTH * 2, scope=scope, mode=mode, minimum=0)
        passages = rerank(question.text, result) if rerank else result.candidates
        # The rank is that among the documents: several passages of one count once.
        paths = list(dict.fromkeys(hit.path for hit in passages))[:DEPTH]
        ranks = (
            rank for rank, path in enumerate(paths, 1) if path.endswith(question.documents)
        )
        yield Outcome(question=question, rank=next(ranks, None), certainty=result.certainty)


def recall(outcomes: Sequence[Outcome], cutoff: int) -> float:
    return mean(outcome.rank is not None and outcome.rank <= cutoff for outcome in outcomes)


def reciprocal_rank(outcomes: Sequence[Outcome]) -> float:
    return mean(1 / outcome.rank if outcome.rank else 0.0 for outcome in outcomes)


def separation(answerable: Sequence[Outcome], unanswerable: Sequence[Outcome]) -> float:
    """Return the area under the curve: how well the certainty tells the two apart."""
    return mean(
        (answered.certainty > missing.certainty)
        + 0.5 * (answered.certainty == missing.certainty)
        for answered in answerable
        for missing in unanswerable
    )
