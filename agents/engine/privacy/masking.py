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
NEAR_CHARS = 48
CONTEXT_CHARS = 240
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
    source, *rendered = readings(text)
    spans = _source_spans(_normalize_digits(source))
    for normalized in rendered[-1:]:
        for section in _changed_sections(_normalize_digits(normalized)):
            spans += _source_spans(section)
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
        held_chars = len(self._text) - self._shown_chars - self.window
        self._next_scan_at = len(self._text) + held_chars // 8
        return released

    def rest(self) -> str:
        """Return the text still held back, once the stream has ended."""
        return self._release(len(self._text))

    def _release(self, until: int) -> str:
        if until <= self._shown_chars:
            return ""
        offset = max(0, self._shown_chars - self.window)
        spans = [
            replace(s, start=max(s.start + offset, self._shown_chars), end=s.end + offset)
            for s in self._find_spans(self._text[offset:])
            if s.end + offset > self._shown_chars
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


def _source_spans(normalized: NormalizedText) -> list[PiiSpan]:
    """Return the spans of personal data, as positions in the original text."""
    plain = normalized.text
    spans: list[PiiSpan] = []
    # Until nothing is found, because a masked value can uncover its neighbor.
    for _ in range(MAX_ROUNDS):
        characters = set(plain)
        lowered = plain.lower()
        new = merge_spans(
            PiiSpan(kind=detector.kind, start=text_range.start, end=text_range.end)
            for detector in DETECTORS
            if detector.may_match(characters, lowered)
            for text_range in detector.find_ranges(plain)
        )
        if not new:
            break
        spans += new
        # Text of the same length takes their place, so that positions don't change.
        start = 0
        pieces = []
        for span in new:
            pieces += [plain[start : span.start], HIDDEN_CHAR * (span.end - span.start)]
            start = span.end
        plain = "".join([*pieces, plain[start:]])
    return [
        replace(span, start=normalized.starts[span.start], end=normalized.ends[span.end - 1])
        for span in merge_spans(spans)
    ]


def merge_spans(spans: Iterable[PiiSpan]) -> tuple[PiiSpan, ...]:
    """Sort and merge spans; of overlapping ones, the longest gives the kind."""
    merged: list[PiiSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, s.start - s.end)):
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            merged.append(span)
        elif span.end > last.end:
            longest = max(last, span, key=lambda s: s.end - s.start)
            merged[-1] = replace(longest, start=last.start, end=span.end)
    return tuple(merged)


def _changed_sections(normalized: NormalizedText) -> list[NormalizedText]:
    """Return the sections of a reading that may contain what its source doesn't show.

    These have a digit, an @ or the letters of a key near a changed character.
    """
    text = normalized.text
    sections: list[tuple[int, int]] = []
    for position in normalized.changes:
        if sections and position < sections[-1][1] - NEAR_CHARS:
            continue
        if not PII_HINT.search(text, max(0, position - NEAR_CHARS), position + NEAR_CHARS):
            continue
        # As wide as the longest pattern, and on to the end of a line or word.
        start = max(0, position - CONTEXT_CHARS)
        gap = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
        start = gap if start - gap < CONTEXT_CHARS else start
        end = min(len(text), position + CONTEXT_CHARS)
        gaps = [text.find(separator, end, end + CONTEXT_CHARS) for separator in " \n"]
        end = min((gap for gap in gaps if gap >= 0), default=end)
        if sections and start <= sections[-1][1]:
            start = sections.pop()[0]
        sections.append((start, end))
    return [
        NormalizedText(
            text=text[start:end],
            starts=normalized.starts[start:end],
            ends=normalized.ends[start:end],
        )
        for start, end in sections
    ]


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
