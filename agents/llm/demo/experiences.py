"""What the demo model does with experiences in its prompt: a demonstration.

It parses our own marks, which says nothing about how other models use them. A correction such
as “GMV means revenue” is applied to the words of a question. Any other is the answer to a
question that its rules can't answer, if that is almost the same question.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agents.engine.text import JAPANESE, fold

from .conversation import Situation, message_text

SECTION = re.compile(r"<experiences>(.*?)</experiences>", re.DOTALL)
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
TERM = re.compile(rf"[a-z0-9][a-z0-9.'%-]*|[{JAPANESE}]")
MIN_OVERLAP = 0.7


class Correction(NamedTuple):
    """What a question was corrected with."""

    question: str
    text: str

    def translate(self, question: str) -> str:
        """Return the question with the word that the correction explains replaced."""
        for match in (
            *ENGLISH_MEANING.finditer(self.text),
            *JAPANESE_MEANING.finditer(self.text),
        ):
            groups = match.groupdict()
            tokens = (groups.get("quoted") or groups["word"]).split(" ")
            # “with us GMV”, then “us GMV”, then “GMV”.
            for start in range(len(tokens)):
                term = " ".join(tokens[start:])
                edge = r"\b" if term.isascii() else ""
                pattern = re.compile(f"{edge}{re.escape(term)}{edge}", re.IGNORECASE)
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
    terms = _terms(question)
    for correction in read(messages):
        corrected = _terms(correction.question)
        is_same = len(terms & corrected) >= MIN_OVERLAP * max(1, len(terms | corrected))
        if is_same and correction.translate(question) == question:
            return correction.text
    return ""


def read(messages: Sequence[Any]) -> Iterator[Correction]:
    """Yield the corrections in a request, the most fitting first."""
    for message in messages:
        for section in SECTION.findall(message_text(message)):
            for match in LINE.finditer(section):
                yield Correction(match["question"], match["text"])


def _terms(text: str) -> set[str]:
    return set(TERM.findall(fold(text)))
