"""What the demo model does with experiences in its prompt.

A correction such as “GMV means revenue” is applied to the words of a question. Any other is
the answer to a question that its rules can't answer, if that is almost the same question.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agents.engine.text import JAPANESE, fold

from .conversation import Situation, message_text

PART = re.compile(r"<experiences>(.*?)</experiences>", re.DOTALL)
LINE = re.compile(r'^- Question: "(?P<question>.*?)" Correction: "(?P<text>.*)"$', re.MULTILINE)
ENGLISH_MEANING = re.compile(
    r"(?:['“‘](?P<quoted>[^'”’]{2,40})['”’]|(?P<word>[\w-]+(?: [\w-]+){0,2}))\s+"
    r"(?:means|stands for|refers to|is the same as)\s+(?:the |our )?"
    r"['“‘]?(?P<meaning>[^'”’.;,。]{2,60})",
    re.IGNORECASE,
)
JAPANESE_MEANING = re.compile(
    r"「?(?P<word>[^「」、。\s]{2,20}?)」?(?:とは|は)、?「?(?P<meaning>[^「」、。\s]{1,20}?)」?"
    r"(?:のこと|の意味|を指|と同じ)"
)
WORDS = re.compile(rf"[a-z0-9][a-z0-9.'%-]*|[{JAPANESE}]")
MIN_OVERLAP = 0.7


class Correction(NamedTuple):
    """What a question was corrected with."""

    question: str
    text: str

    def translate(self, question: str) -> str:
        """Return the question with the word that the correction explains replaced."""
        for found in (
            *ENGLISH_MEANING.finditer(self.text),
            *JAPANESE_MEANING.finditer(self.text),
        ):
            groups = found.groupdict()
            for word in _endings(groups.get("quoted") or groups["word"]):
                edge = r"\b" if word.isascii() else ""
                pattern = re.compile(f"{edge}{re.escape(word)}{edge}", re.IGNORECASE)
                if pattern.search(question):
                    return groups["meaning"].strip().join(pattern.split(question))
        return question


def apply(situation: Situation, messages: Sequence[Any]) -> Situation:
    """Return the situation with the question as its experiences explain it."""
    text = situation.question.text
    for correction in read(messages):
        text = correction.translate(text)
    if text == situation.question.text:
        return situation
    return situation._replace(question=situation.question.part(text))


def known_answer(question: str, messages: Sequence[Any]) -> str:
    """Return the answer that almost the same question was corrected with, or an empty text."""
    asked = _words(question)
    for correction in read(messages):
        known = _words(correction.question)
        is_same = len(asked & known) >= MIN_OVERLAP * max(1, len(asked | known))
        if is_same and correction.translate(question) == question:
            return correction.text
    return ""


def read(messages: Sequence[Any]) -> Iterator[Correction]:
    """Yield the corrections in a request, the most fitting first."""
    for message in messages:
        for part in PART.findall(message_text(message)):
            for found in LINE.finditer(part):
                yield Correction(found["question"], found["text"])


def _endings(words: str) -> Iterator[str]:
    """Yield the words, then without the first one and so on: “with us GMV”, “us GMV”, “GMV”."""
    parts = words.split(" ")
    yield from (" ".join(parts[at:]) for at in range(len(parts)))


def _words(text: str) -> set[str]:
    return set(WORDS.findall(fold(text)))
