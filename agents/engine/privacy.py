"""Personal data in texts, found and masked.

A text is read as a person reads it: full-width digits, odd dashes and characters that cannot
be seen hide nothing. What is found is said in places of the text as it was written.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .personal import FORMS, Kind

MARK = "›"  # stands for what is hidden already; no form reaches across it
MOST_ROUNDS = 8
DASHES = dict.fromkeys("\u2010\u2012\u2013\u2014\u2015\u2043\u2212\ufe58", "-")
UNSEEN = re.compile("VARIATION SELECTOR|COMBINING GRAPHEME JOINER|HANGUL .*FILLER")
LONG_VOWEL = re.compile("(?<=[0-9])ー(?=[0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something personal: from where to where it stands, and what is shown instead."""

    kind: Kind
    start: int
    end: int

    @property
    def replacement(self) -> str:
        return f"‹{self.kind.value}›"


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    text: str
    spans: tuple[Span, ...] = ()


def mask(text: str) -> Masked:
    """The text without personal data, and where there was some."""
    spans = find(text)
    return Masked(text=_hidden(text, spans, 0, len(text)), spans=spans)


def find(text: str) -> tuple[Span, ...]:
    """What is personal in it, in order, none over another."""
    plain, places = _read(text)
    found = _all(plain)
    if places is not None:
        found = [replace(s, start=places[s.start], end=places[s.end - 1] + 1) for s in found]
    return merged(found)


class Growing:
    """Text that is still being written, masked, and a little behind.

    Its last characters wait until it is known what follows them: half of an address would
    be shown before the other half says that it is one.
    """

    window = 120

    def __init__(self, text: str = "", find: Callable[[str], Sequence[Span]] = find) -> None:
        """`find` says what is personal, where more is known than a text says of itself."""
        self._find = find
        self._text = ""
        self._shown = 0
        self._looks_at = 0
        self.shown = self.feed(text)

    def feed(self, piece: str) -> str:
        """What can be shown by now and was not before."""
        self._text += piece
        if len(self._text) < self._looks_at:
            return ""
        shown = self._released(len(self._text) - self.window)
        # What is held back is read anew at each look: the more it is, the seldomer.
        held = len(self._text) - self._shown - self.window
        self._looks_at = len(self._text) + held // 8
        return shown

    def rest(self) -> str:
        """What was still waiting, once the text has ended."""
        return self._released(len(self._text))

    def _released(self, until: int) -> str:
        if until <= self._shown:
            return ""
        before = max(0, self._shown - self.window)
        spans = [
            replace(s, start=max(s.start + before, self._shown), end=s.end + before)
            for s in self._find(self._text[before:])
            if s.end + before > self._shown
        ]
        until = min([until, *(s.start for s in spans if s.start < until < s.end)])
        start, self._shown = self._shown, until
        return _hidden(self._text, [s for s in spans if s.end <= until], start, until)


def _hidden(text: str, spans: Iterable[Span], start: int, end: int) -> str:
    pieces = []
    for span in spans:
        pieces += [text[start : span.start], span.replacement]
        start = span.end
    return "".join([*pieces, text[start:end]])


def _all(plain: str) -> list[Span]:
    """Again until nothing is left: what is hidden was in the way of what stands beside it."""
    found: list[Span] = []
    for _ in range(MOST_ROUNDS):
        new = merged(_once(plain))
        if not new:
            break
        found += new
        plain = _blanked(plain, new)
    return list(merged(found))


def _once(plain: str) -> list[Span]:
    characters = set(plain)
    return [
        Span(kind=form.kind, start=place.start, end=place.end)
        for form in FORMS
        if form.may_be_in(characters)
        for place in form.places(plain)
    ]


def _blanked(plain: str, spans: Sequence[Span]) -> str:
    """As long as before, so that places stay places."""
    start, pieces = 0, []
    for span in spans:
        pieces += [plain[start : span.start], MARK * (span.end - span.start)]
        start = span.end
    return "".join([*pieces, plain[start:]])


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """In order; of those that share a character, the longest names the whole."""
    apart: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, s.start - s.end)):
        last = apart[-1] if apart else None
        if last is None or span.start >= last.end:
            apart.append(span)
        elif span.end > last.end:
            longest = max(last, span, key=lambda s: s.end - s.start)
            apart[-1] = replace(longest, start=last.start, end=span.end)
    return tuple(apart)


def _read(text: str) -> tuple[str, Sequence[int] | None]:
    """The text as a reader takes it, and which character of the original each one was."""
    if text.isascii():
        return text, None
    forms = [_form(character) for character in text]
    plain = LONG_VOWEL.sub("-", "".join(forms))
    if all(len(form) == 1 for form in forms):
        return plain, None
    return plain, [at for at, form in enumerate(forms) for _ in form]


@lru_cache(maxsize=65_536)
def _form(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf" or UNSEEN.search(unicodedata.name(character, "")):
        return ""
    if category == "Cs":
        return "\ufffd"  # half a character, which RE2 does not take
    if category == "Nd":
        return str(unicodedata.digit(character))
    plain = unicodedata.normalize("NFKC", character)
    return DASHES.get(plain, plain)


__all__ = ["Growing", "Kind", "Masked", "Span", "find", "mask", "merged"]
