"""Personal data in texts, found and masked.

A text is read as a person reads it: full-width digits, odd dashes and characters that cannot
be seen hide nothing. What is found is said in places of the text as it was written.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agents.engine.guardrails.normalization import NormalizedText, readings

from .detectors import DETECTORS, PiiKind

HIDDEN_CHAR = "›"  # stands for what is hidden already; no form reaches across it
MAX_ROUNDS = 8
DASHES = "\u2010\u2012\u2013\u2014\u2015\u2043\u2212\ufe58"
# Written between digits as a hyphen is: a long vowel, a middle dot.
PII_HINT = re.compile("[0-9@]|[_.-][A-Za-z]{12}|[A-Za-z]{20}")
NEAR_CHARS, CONTEXT_CHARS = 48, 240
BETWEEN_DIGITS = re.compile("(?<=[0-9])[ー・](?=[0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class PiiSpan:
    """Something personal: from where to where it stands, and what is shown instead."""

    kind: PiiKind
    start: int
    end: int

    @property
    def replacement(self) -> str:
        return f"‹{self.kind.value}›"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedText:
    text: str
    spans: tuple[PiiSpan, ...] = ()


def mask(text: str) -> MaskedText:
    """The text without personal data, and where there was some."""
    spans = find(text)
    return MaskedText(text=_replace_spans(text, spans, 0, len(text)), spans=spans)


def find(text: str) -> tuple[PiiSpan, ...]:
    """What is personal in it, in order, none over another."""
    source, *others = readings(text)
    found = _source_spans(_normalize_digits(source))
    for read in others[-1:]:
        for part in _changed_parts(_normalize_digits(read)):
            found += _source_spans(part)
    return merge_spans(found)


class StreamingMasker:
    """Text that is still being written, masked, and a little behind.

    Its last characters wait until it is known what follows them: half of an address would
    be shown before the other half says that it is one.
    """

    window = 120

    def __init__(self, text: str = "", find: Callable[[str], Sequence[PiiSpan]] = find) -> None:
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
        shown = self._release(len(self._text) - self.window)
        # What is held back is read anew at each look: the more it is, the seldomer.
        held = len(self._text) - self._shown - self.window
        self._looks_at = len(self._text) + held // 8
        return shown

    def rest(self) -> str:
        """What was still waiting, once the text has ended."""
        return self._release(len(self._text))

    def _release(self, until: int) -> str:
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
        return _replace_spans(self._text, [s for s in spans if s.end <= until], start, until)


def _replace_spans(text: str, spans: Iterable[PiiSpan], start: int, end: int) -> str:
    pieces = []
    for span in spans:
        pieces += [text[start : span.start], span.replacement]
        start = span.end
    return "".join([*pieces, text[start:end]])


def _find_all(plain: str) -> list[PiiSpan]:
    """Again until nothing is left: what is hidden was in the way of what stands beside it."""
    found: list[PiiSpan] = []
    for _ in range(MAX_ROUNDS):
        new = merge_spans(_find_once(plain))
        if not new:
            break
        found += new
        plain = _blank_out(plain, new)
    return list(merge_spans(found))


def _find_once(plain: str) -> list[PiiSpan]:
    characters, small = set(plain), plain.lower()
    return [
        PiiSpan(kind=form.kind, start=place.start, end=place.end)
        for form in DETECTORS
        if form.may_match(characters, small)
        for place in form.find_ranges(plain)
    ]


def _blank_out(plain: str, spans: Sequence[PiiSpan]) -> str:
    """As long as before, so that places stay places."""
    start, pieces = 0, []
    for span in spans:
        pieces += [plain[start : span.start], HIDDEN_CHAR * (span.end - span.start)]
        start = span.end
    return "".join([*pieces, plain[start:]])


def merge_spans(spans: Iterable[PiiSpan]) -> tuple[PiiSpan, ...]:
    """In order; of those that share a character, the longest names the whole."""
    apart: list[PiiSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, s.start - s.end)):
        last = apart[-1] if apart else None
        if last is None or span.start >= last.end:
            apart.append(span)
        elif span.end > last.end:
            longest = max(last, span, key=lambda s: s.end - s.start)
            apart[-1] = replace(longest, start=last.start, end=span.end)
    return tuple(apart)


def _source_spans(read: NormalizedText) -> list[PiiSpan]:
    return [
        replace(span, start=read.starts[span.start], end=read.ends[span.end - 1])
        for span in _find_all(read.text)
    ]


def _changed_parts(read: NormalizedText) -> list[NormalizedText]:
    """The parts of a reading that may hold what its source does not show.

    They are those with a digit, an @ or the letters of a key near to what is written
    otherwise there.
    """
    parts: list[tuple[int, int]] = []
    for at in read.changes:
        if parts and at < parts[-1][1] - NEAR_CHARS:
            continue
        if not PII_HINT.search(read.text, max(0, at - NEAR_CHARS), at + NEAR_CHARS):
            continue
        start, end = _widen(read.text, at)
        if parts and start <= parts[-1][1]:
            start = parts.pop()[0]
        parts.append((start, end))
    return [
        NormalizedText(text=read.text[a:b], starts=read.starts[a:b], ends=read.ends[a:b])
        for a, b in parts
    ]


def _widen(text: str, at: int) -> tuple[int, int]:
    """Enough around it for the longest form, to the end of a line or a word."""
    start, end = max(0, at - CONTEXT_CHARS), min(len(text), at + CONTEXT_CHARS)
    gap = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
    start = gap if start - gap < CONTEXT_CHARS else start
    ends = [
        place for mark in " \n" if (place := text.find(mark, end, end + CONTEXT_CHARS)) >= 0
    ]
    return start, min(ends, default=end)


def _normalize_digits(read: NormalizedText) -> NormalizedText:
    """All digits and dashes in the form that most know; as many characters as before."""
    if read.text.isascii():
        return read
    text = BETWEEN_DIGITS.sub("-", read.text.translate(_DIGIT_TABLE))
    return replace(read, text=text)


class _DigitTable(dict[int, int]):
    def __missing__(self, code: int) -> int:
        character = chr(code)
        is_digit = unicodedata.category(character) == "Nd"
        self[code] = ord(str(unicodedata.digit(character))) if is_digit else code
        return self[code]


_DIGIT_TABLE = _DigitTable(dict.fromkeys(map(ord, DASHES), ord("-")))


__all__ = ["StreamingMasker", "PiiKind", "MaskedText", "PiiSpan", "find", "mask", "merge_spans"]
