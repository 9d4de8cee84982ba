"""What a detector is: a pattern and a check of what it matches."""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import re2

from .. import validators
from ..validators import Candidate

CONTEXT_CHARS = 32
# What many patterns share.
LEFT_BOUNDARY = r"(?:^|[^0-9A-Za-z_])"
GAP = r"[^0-9\n‹›]{0,16}?"
# Without ‹›: the name in a mask, as in ‹account›, isn't a label of what follows.
BETWEEN_WORDS = r"(?:[^\w‹›]|_){0,2}"
LABEL_SUFFIX = (
    rf"(?:{BETWEEN_WORDS}(?:number|numbers|no|num|nr|code|is|was|番号|は|が))*[^\w‹›]{{0,4}}"
)
DIGITS = "0123456789"


class PiiKind(StrEnum):
    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    ACCOUNT = "account"
    IBAN = "IBAN"
    MY_NUMBER = "My Number"
    PASSPORT = "passport"
    SSN = "SSN"
    NI_NUMBER = "NI number"
    BIRTH_DATE = "date of birth"
    LICENCE = "driving licence"
    PENSION = "pension number"
    INSURANCE = "insurance number"
    RESIDENCE_CARD = "residence card"
    ADDRESS = "address"
    IP = "IP address"
    KEY = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRange:
    start: int
    end: int


CandidateCheck = Callable[[Candidate], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """How one kind is written. Group 1 is the value; the check returns the part that counts."""

    kind: PiiKind
    pattern: Any
    check: CandidateCheck
    needs: frozenset[str] = frozenset()  # the text must contain one of these characters
    words: tuple[str, ...] = ()  # or one of these words, in lower case

    def may_match(self, characters: Set[str], lowered: str) -> bool:
        if self.needs and self.needs.isdisjoint(characters):
            return False
        return not self.words or any(word in lowered for word in self.words)

    def find_ranges(self, text: str) -> Iterator[TextRange]:
        for match in self.pattern.finditer(text):
            start, end = match.span(1)
            candidate = Candidate(
                value=text[start:end],
                before=text[max(0, start - CONTEXT_CHARS) : start],
                after=text[end : end + CONTEXT_CHARS],
            )
            if value := self.check(candidate):
                yield TextRange(start=start, end=start + len(value))


def make_detector(
    kind: PiiKind,
    pattern: str,
    check: CandidateCheck = validators.any_value,
    needs: str = "",
    words: str = "",
) -> Detector:
    """Compile a pattern; RE2, so no text takes long."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    compiled = re2.compile(pattern, options)
    return Detector(
        kind=kind,
        pattern=compiled,
        check=check,
        needs=frozenset(needs),
        words=tuple(words.split()),
    )
