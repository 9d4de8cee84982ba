"""Finds and masks personal data in text.

Text is normalized first: full-width digits, unusual dashes and invisible characters hide
nothing. Spans are positions in the original text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agents.engine.guardrails.normalization import NormalizedText, readings

from .detectors import DETECTORS, PiiKind

HIDDEN_CHAR = "›"  # replaces masked text; no pattern matches across it
MAX_ROUNDS = 8
DASHES = "\u2010\u2012\u2013\u2014\u2015\u2043\u2212\ufe58"
# Used between digits like a hyphen: a long vowel mark, a middle dot.
PII_HINT = re.compile("[0-9@]|[_.-][A-Za-z]{12}|[A-Za-z]{20}")
NEAR_CHARS, CONTEXT_CHARS = 48, 240
BETWEEN_DIGITS = re.compile("(?<=[0-9])[ー・](?=[0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class PiiSpan:
    """A span of personal data and its replacement."""

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
    """Return the masked text and its spans."""
    spans = find(text)
    return MaskedText(text=_replace_spans(text, spans, 0, len(text)), spans=spans)


def find(text: str) -> tuple[PiiSpan, ...]:
    """Return spans of personal data, in order and without overlaps."""
    source, *others = readings(text)
    spans = _source_spans(_normalize_digits(source))
    for normalized in others[-1:]:
        for part in _changed_parts(_normalize_digits(normalized)):
            spans += _source_spans(part)
    return merge_spans(spans)


class StreamingMasker:
    """Masks streamed text with a short delay.

    Its last characters wait for what follows: half an address would be visible before the other
    half identifies it.
    """

    window = 120

    def __init__(
        self, text: str = "", find_spans: Callable[[str], Sequence[PiiSpan]] = find
    ) -> None:
        """`find_spans` replaces the detection, if more is known than the text shows."""
        self._find_spans = find_spans
        self._text = ""
        self._shown_chars = 0
        self._next_scan_at = 0
        self.released = self.feed(text)

    def feed(self, piece: str) -> str:
        """Add a piece and return what can be released."""
        self._text += piece
        if len(self._text) < self._next_scan_at:
            return ""
        released = self._release(len(self._text) - self.window)
        # Held text is scanned again each time, so the more there is, the less often.
        held = len(self._text) - self._shown_chars - self.window
        self._next_scan_at = len(self._text) + held // 8
        return released

    def rest(self) -> str:
        """Return the text still held back, once the stream has ended."""
        return self._release(len(self._text))

    def _release(self, until: int) -> str:
        if until <= self._shown_chars:
            return ""
        before = max(0, self._shown_chars - self.window)
        spans = [
            replace(s, start=max(s.start + before, self._shown_chars), end=s.end + before)
            for s in self._find_spans(self._text[before:])
            if s.end + before > self._shown_chars
        ]
        until = min([until, *(s.start for s in spans if s.start < until < s.end)])
        start = self._shown_chars
        self._shown_chars = until
        return _replace_spans(self._text, [s for s in spans if s.end <= until], start, until)


def _replace_spans(text: str, spans: Iterable[PiiSpan], start: int, end: int) -> str:
    pieces = []
    for span in spans:
        pieces += [text[start : span.start], span.replacement]
        start = span.end
    return "".join([*pieces, text[start:end]])


def _find_all(plain: str) -> list[PiiSpan]:
    """Repeat until nothing is found, because a masked value can uncover its neighbor."""
    found: list[PiiSpan] = []
    for _ in range(MAX_ROUNDS):
        new = merge_spans(_find_once(plain))
        if not new:
            break
        found += new
        plain = _blank_out(plain, new)
    return list(merge_spans(found))


def _find_once(plain: str) -> list[PiiSpan]:
    characters = set(plain)
    lowered = plain.lower()
    return [
        PiiSpan(kind=detector.kind, start=text_range.start, end=text_range.end)
        for detector in DETECTORS
        if detector.may_match(characters, lowered)
        for text_range in detector.find_ranges(plain)
    ]


def _blank_out(plain: str, spans: Sequence[PiiSpan]) -> str:
    """Replace the spans by text of the same length, so that positions don't change."""
    start, pieces = 0, []
    for span in spans:
        pieces += [plain[start : span.start], HIDDEN_CHAR * (span.end - span.start)]
        start = span.end
    return "".join([*pieces, plain[start:]])


def merge_spans(spans: Iterable[PiiSpan]) -> tuple[PiiSpan, ...]:
    """Sort and merge spans; of overlapping ones, the longest gives the kind."""
    apart: list[PiiSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, s.start - s.end)):
        last = apart[-1] if apart else None
        if last is None or span.start >= last.end:
            apart.append(span)
        elif span.end > last.end:
            longest = max(last, span, key=lambda s: s.end - s.start)
            apart[-1] = replace(longest, start=last.start, end=span.end)
    return tuple(apart)


def _source_spans(normalized: NormalizedText) -> list[PiiSpan]:
    return [
        replace(span, start=normalized.starts[span.start], end=normalized.ends[span.end - 1])
        for span in _find_all(normalized.text)
    ]


def _changed_parts(normalized: NormalizedText) -> list[NormalizedText]:
    """Return the parts of a reading that may contain what its source doesn't show.

    These have a digit, an @ or the letters of a key near a changed character.
    """
    parts: list[tuple[int, int]] = []
    for position in normalized.changes:
        if parts and position < parts[-1][1] - NEAR_CHARS:
            continue
        if not PII_HINT.search(
            normalized.text, max(0, position - NEAR_CHARS), position + NEAR_CHARS
        ):
            continue
        start, end = _widen(normalized.text, position)
        if parts and start <= parts[-1][1]:
            start = parts.pop()[0]
        parts.append((start, end))
    return [
        NormalizedText(
            text=normalized.text[a:b], starts=normalized.starts[a:b], ends=normalized.ends[a:b]
        )
        for a, b in parts
    ]


def _widen(text: str, at: int) -> tuple[int, int]:
    """Widen to the longest pattern, and on to the end of a line or word."""
    start, end = max(0, at - CONTEXT_CHARS), min(len(text), at + CONTEXT_CHARS)
    gap = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
    start = gap if start - gap < CONTEXT_CHARS else start
    ends = [
        place for mark in " \n" if (place := text.find(mark, end, end + CONTEXT_CHARS)) >= 0
    ]
    return start, min(ends, default=end)


def _normalize_digits(normalized: NormalizedText) -> NormalizedText:
    """Normalize digits and dashes; the length stays the same."""
    if normalized.text.isascii():
        return normalized
    text = BETWEEN_DIGITS.sub("-", normalized.text.translate(_DIGIT_TABLE))
    return replace(normalized, text=text)


class _DigitTable(dict[int, int]):
    def __missing__(self, code: int) -> int:
        character = chr(code)
        is_digit = unicodedata.category(character) == "Nd"
        self[code] = ord(str(unicodedata.digit(character))) if is_digit else code
        return self[code]


_DIGIT_TABLE = _DigitTable(dict.fromkeys(map(ord, DASHES), ord("-")))


__all__ = ["StreamingMasker", "PiiKind", "MaskedText", "PiiSpan", "find", "mask", "merge_spans"]
