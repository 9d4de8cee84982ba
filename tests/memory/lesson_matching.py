"""Measures whether lessons reach the questions they fit, and no others.

`DJANGO_SETTINGS_MODULE=project.settings python -m tests.memory.lesson_matching` prints the
figures with and without embeddings, with `-v` also what went wrong.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from unittest.mock import patch

import django
import numpy as np

if __name__ == "__main__":
    django.setup()

from agents.knowledge import embeddings
from agents.memory import recall, vectors
from agents.models import Agent, Experience

from . import lesson_questions as corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How many lessons that questions got fit them, and how many questions got theirs."""

    questions: int
    recalled: int  # lessons that questions got
    right: int  # of them, those that fit, one for each question at most
    controls: int
    disturbed: int  # control questions that got a lesson

    @property
    def precision(self) -> float:
        return self.right / max(1, self.recalled)

    @property
    def recall(self) -> float:
        return self.right / self.questions


def measure(*, is_held_out: bool, with_meaning: bool = True) -> Figures:
    """Ask one half of the questions, each with all lessons as candidates."""
    fitting = corpus.FITTING[int(is_held_out) :: 2]
    controls = corpus.CONTROLS[int(is_held_out) :: 2]
    asked = [question for question, _lesson in fitting]
    got = asyncio.run(recall_all(asked, with_meaning=with_meaning))
    disturbed = asyncio.run(recall_all(controls, with_meaning=with_meaning))
    if "-v" in sys.argv:
        for (question, lesson), numbers in zip(fitting, got, strict=True):
            if numbers != [lesson]:
                print(f"  fitting {question!r}: {numbers}, expected {lesson}")  # noqa: T201
        for question, numbers in zip(controls, disturbed, strict=True):
            if numbers:
                print(f"  control {question!r}: {numbers}")  # noqa: T201
    right = sum(pair[1] in numbers for pair, numbers in zip(fitting, got, strict=True))
    return Figures(
        questions=len(fitting),
        recalled=sum(map(len, [*got, *disturbed])),
        right=right,
        controls=len(controls),
        disturbed=sum(map(bool, disturbed)),
    )


async def recall_all(questions: Sequence[str], *, with_meaning: bool) -> list[list[int]]:
    """Return the numbers of the lessons that each question gets."""
    lessons = [
        Experience(pk=number, kind=kind, question=question, text=text)
        for number, (kind, question, text) in enumerate(corpus.LESSONS)
    ]
    similarities: dict[str, dict[Experience, float]] = {}
    if with_meaning:
        texts = [lesson.compared for lesson in lessons]
        known = np.array(embeddings.embed(texts, "passage", model="local"))
        asked = np.array(embeddings.embed(questions, "query", model="local"))
        for question, row in zip(questions, asked @ known.T, strict=True):
            similarities[question] = dict(zip(lessons, map(float, row), strict=True))

    async def look_up(notes: object, question: str) -> dict[Experience, float]:
        return similarities.get(question, {})

    recalled = []
    with patch.object(vectors, "similarities", look_up):
        for question in questions:
            notes = await recall(lessons, question, Agent(), estimate_tokens)
            recalled.append([note.note.pk for note in notes])
    return recalled


def estimate_tokens(text: str) -> int:
    return len(text) // 4


def main() -> None:
    for with_meaning in (True, False):
        for is_held_out in (False, True):
            figures = measure(is_held_out=is_held_out, with_meaning=with_meaning)
            print(  # noqa: T201
                "words and meaning" if with_meaning else "words alone",
                "held out" if is_held_out else "chosen with",
                f"precision {figures.precision:.2f} ({figures.right} of {figures.recalled})",
                f"recall {figures.recall:.2f} ({figures.right} of {figures.questions})",
                f"controls with a lesson {figures.disturbed} of {figures.controls}",
                sep=" · ",
            )


if __name__ == "__main__":
    main()
