"""Compares two texts by word or, without spaces, by script."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, takewhile

from agents.engine.text import HIRAGANA, JAPANESE, KANJI, KATAKANA

JAPANESE_RUN = re.compile(f"[{JAPANESE}]+")
# Japanese words have no visible end, but rarely continue in another script.
WORD = re.compile(
    rf"\s+|[{HIRAGANA}]+|[{KATAKANA}]+|[{KANJI}]+"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?"
    rf"|[^\W\d{JAPANESE}][^\W{JAPANESE}]*(?:['’]\w+)?|.",
    re.DOTALL,
)

MAX_PARTS = 3_000
MAX_WORK = 100_000
PAGE_WORK = 600_000


@dataclass(frozen=True, slots=True)
class DiffPiece:
    text: str
    is_changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiff:
    """Both texts in pieces; in a coarse diff, some are too long for word comparison."""

    left: tuple[DiffPiece, ...]
    right: tuple[DiffPiece, ...]
    is_coarse: bool = False

    @property
    def is_equal(self) -> bool:
        return not any(piece.is_changed for piece in (*self.left, *self.right))


@dataclass(frozen=True, slots=True)
class _DiffSpan:
    """A span that is equal in both texts, or that replaces another."""

    left: str
    right: str
    is_changed: bool
    is_coarse: bool = False


class TextDiffer:
    """Compares texts for one page, within the time a reader would wait."""

    def __init__(self, work: int = PAGE_WORK) -> None:
        self.work = work

    def compare(self, left: str, right: str) -> TextDiff:
        spans = self._diff_parts(split_words, left, right)
        if any(span.is_coarse for span in spans):
            blocks = self._diff_parts(_split_lines, left, right)
            spans = [span for block in blocks for span in self._diff_block(block)]
        spans = _align_lines(_merge_small(spans))
        return TextDiff(
            left=_group_pieces((span.left, span.is_changed) for span in spans),
            right=_group_pieces((span.right, span.is_changed) for span in spans),
            is_coarse=any(span.is_coarse for span in spans),
        )

    def _diff_block(self, block: _DiffSpan) -> list[_DiffSpan]:
        return (
            self._diff_parts(split_words, block.left, block.right)
            if block.is_changed
            else [block]
        )

    def _diff_parts(
        self, split: Callable[[str], list[str]], left: str, right: str
    ) -> list[_DiffSpan]:
        """Diff two texts; their common start and end need no work."""
        ours = split(left)
        theirs = split(right)
        start, end = _common_ends(ours, theirs)
        before = "".join(ours[:start])
        after = "".join(ours[len(ours) - end :])
        ours = ours[start : len(ours) - end]
        theirs = theirs[start : len(theirs) - end]
        spans = [_DiffSpan("".join(ours), "".join(theirs), is_changed=True, is_coarse=True)]
        if not ours or not theirs or self._can_afford(ours, theirs):
            spans = _match_parts(ours, theirs)
        return [_DiffSpan(before, before, False), *spans, _DiffSpan(after, after, False)]

    def _can_afford(self, left: Sequence[str], right: Sequence[str]) -> bool:
        """Whether the diff is affordable: parts that are frequent in both are slow to match."""
        counts = Counter(right)
        work = (
            len(left) + len(right) + sum(counts[part] for part in left if _is_significant(part))
        )
        is_little = max(len(left), len(right)) <= MAX_PARTS and work <= MAX_WORK
        if not is_little or work > self.work:
            return False
        self.work -= work
        return True


def split_words(text: str) -> list[str]:
    return WORD.findall(text)


def _split_lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _common_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal parts at the start and, of the rest, at the end."""
    start = _common_length(zip(left, right, strict=False))
    rest = min(len(left), len(right)) - start
    end = _common_length(zip(reversed(left), reversed(right), strict=False))
    return start, min(end, rest)


def _common_length(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _match_parts(left: Sequence[str], right: Sequence[str]) -> list[_DiffSpan]:
    """Match parts; spaces and punctuation only match together with the words around them."""
    matcher = SequenceMatcher(
        lambda part: not _is_significant(part), left, right, autojunk=False
    )
    spans: list[_DiffSpan] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        ours, theirs = "".join(left[a:b]), "".join(right[c:d])
        spans += (
            [_DiffSpan(ours, theirs, False)]
            if tag == "equal"
            else _narrow_japanese(ours, theirs)
        )
    return spans


def _narrow_japanese(left: str, right: str) -> list[_DiffSpan]:
    """Narrow a Japanese change to what differs, because endings follow without a space."""
    if not (JAPANESE_RUN.fullmatch(left) and JAPANESE_RUN.fullmatch(right)):
        return [_DiffSpan(left, right, True)]
    start, end = _common_ends(left, right)
    a, b = len(left) - end, len(right) - end
    return [
        _DiffSpan(left[:start], right[:start], False),
        _DiffSpan(left[start:a], right[start:b], True),
        _DiffSpan(left[a:], right[b:], False),
    ]


def _merge_small(spans: Iterable[_DiffSpan]) -> list[_DiffSpan]:
    """Merge small equal spans between changes, which only make a diff hard to read."""
    found: list[_DiffSpan] = []
    for span in spans:
        if found and found[-1].is_changed == span.is_changed:
            span = _join_spans([found.pop(), span])
        found.append(span)
        while span.is_changed and len(found) > 2 and _is_small(*found[-3:]):
            found[-3:] = [span := _join_spans(found[-3:])]
    return found


def _join_spans(spans: Sequence[_DiffSpan]) -> _DiffSpan:
    return _DiffSpan(
        "".join(span.left for span in spans),
        "".join(span.right for span in spans),
        is_changed=any(span.is_changed for span in spans),
        is_coarse=any(span.is_coarse for span in spans),
    )


def _is_small(before: _DiffSpan, same: _DiffSpan, after: _DiffSpan) -> bool:
    around = min(max(len(span.left), len(span.right)) for span in (before, after))
    return 2 * len(same.left) <= around


def _align_lines(spans: list[_DiffSpan]) -> list[_DiffSpan]:
    """Shift insertions and deletions to whole lines where possible."""
    for at in range(1, len(spans) - 1):
        before, span, after = spans[at - 1 : at + 2]
        if span.is_changed and not (span.left and span.right):
            spans[at - 1 : at + 2] = _shift_span(before.left, span, after.left)
    return spans


def _shift_span(before: str, span: _DiffSpan, after: str) -> list[_DiffSpan]:
    text = span.left or span.right
    both, last = text + after, len(text) - 1
    farthest = min(_common_length(zip(both, after, strict=False)), len(text))
    ways = (n for n in range(farthest + 1) if "\n" in (both[n], both[n + last]))
    n = next(ways, 0)
    start, end, moved = before + text[:n], after[n:], both[n : n + len(text)]
    return [
        _DiffSpan(start, start, False),
        replace(span, left=moved) if span.left else replace(span, right=moved),
        _DiffSpan(end, end, False),
    ]


def _is_significant(part: str) -> bool:
    return part[0].isalnum() or (len(part) > 1 and not part.isspace())


def _group_pieces(pieces: Iterable[tuple[str, bool]]) -> tuple[DiffPiece, ...]:
    visible = [piece for piece in pieces if piece[0]]
    groups = groupby(visible, key=lambda piece: piece[1])
    return tuple(
        DiffPiece("".join(text for text, _ in group), changed) for changed, group in groups
    )
