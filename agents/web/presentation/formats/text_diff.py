"""Compares two texts by word or, without spaces, by script."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
        spans = self._diff_parts(split_words(left), split_words(right))
        if any(span.is_coarse for span in spans):
            lines = self._diff_parts(
                left.splitlines(keepends=True), right.splitlines(keepends=True)
            )
            spans = []
            for block in lines:
                if block.is_changed:
                    spans += self._diff_parts(split_words(block.left), split_words(block.right))
                else:
                    spans.append(block)
        spans = _align_lines(_merge_small(spans))
        return TextDiff(
            left=_group_pieces((span.left, span.is_changed) for span in spans),
            right=_group_pieces((span.right, span.is_changed) for span in spans),
            is_coarse=any(span.is_coarse for span in spans),
        )

    def _diff_parts(self, ours: list[str], theirs: list[str]) -> list[_DiffSpan]:
        """Diff two texts; their common start and end need no work."""
        start, end = _common_ends(ours, theirs)
        prefix = "".join(ours[:start])
        suffix = "".join(ours[len(ours) - end :])
        ours = ours[start : len(ours) - end]
        theirs = theirs[start : len(theirs) - end]
        spans = [_DiffSpan("".join(ours), "".join(theirs), is_changed=True, is_coarse=True)]
        if not ours or not theirs or self._can_afford(ours, theirs):
            spans = _match_parts(ours, theirs)
        return [_DiffSpan(prefix, prefix, False), *spans, _DiffSpan(suffix, suffix, False)]

    def _can_afford(self, left: Sequence[str], right: Sequence[str]) -> bool:
        """Whether the diff is affordable: words that are frequent in both are slow to match."""
        counts = Counter(right)
        work = (
            len(left) + len(right) + sum(counts[word] for word in left if _is_significant(word))
        )
        is_little = max(len(left), len(right)) <= MAX_PARTS and work <= MAX_WORK
        if not is_little or work > self.work:
            return False
        self.work -= work
        return True


def split_words(text: str) -> list[str]:
    return WORD.findall(text)


def _common_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal parts at the start and, of the remaining ones, at the end."""
    start = _common_length(zip(left, right, strict=False))
    end = _common_length(zip(reversed(left), reversed(right), strict=False))
    return start, min(end, min(len(left), len(right)) - start)


def _common_length(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _match_parts(left: Sequence[str], right: Sequence[str]) -> list[_DiffSpan]:
    """Match parts; spaces and punctuation only match together with the words around them."""
    matcher = SequenceMatcher(
        lambda word: not _is_significant(word), left, right, autojunk=False
    )
    spans: list[_DiffSpan] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        ours = "".join(left[a:b])
        theirs = "".join(right[c:d])
        if tag == "equal":
            spans.append(_DiffSpan(ours, theirs, False))
        elif JAPANESE_RUN.fullmatch(ours) and JAPANESE_RUN.fullmatch(theirs):
            # Narrowed to what differs, because endings follow without a space.
            start, end = _common_ends(ours, theirs)
            our_end = len(ours) - end
            their_end = len(theirs) - end
            spans += [
                _DiffSpan(ours[:start], theirs[:start], False),
                _DiffSpan(ours[start:our_end], theirs[start:their_end], True),
                _DiffSpan(ours[our_end:], theirs[their_end:], False),
            ]
        else:
            spans.append(_DiffSpan(ours, theirs, True))
    return spans


def _merge_small(spans: Iterable[_DiffSpan]) -> list[_DiffSpan]:
    """Merge small equal spans between changes, which only make a diff hard to read."""
    merged: list[_DiffSpan] = []
    for span in spans:
        if merged and merged[-1].is_changed == span.is_changed:
            span = _join_spans([merged.pop(), span])
        merged.append(span)
        while span.is_changed and len(merged) > 2:
            changes = (merged[-3], span)
            min_change = min(max(len(change.left), len(change.right)) for change in changes)
            if 2 * len(merged[-2].left) > min_change:
                break
            span = _join_spans(merged[-3:])
            merged[-3:] = [span]
    return merged


def _join_spans(spans: Sequence[_DiffSpan]) -> _DiffSpan:
    return _DiffSpan(
        "".join(span.left for span in spans),
        "".join(span.right for span in spans),
        is_changed=any(span.is_changed for span in spans),
        is_coarse=any(span.is_coarse for span in spans),
    )


def _align_lines(spans: list[_DiffSpan]) -> list[_DiffSpan]:
    """Shift insertions and deletions to whole lines where possible."""
    for index in range(1, len(spans) - 1):
        previous, span, following = spans[index - 1 : index + 2]
        if not span.is_changed or (span.left and span.right):
            continue
        text = span.left or span.right
        combined = text + following.left
        max_shift = min(_common_length(zip(combined, following.left, strict=False)), len(text))
        shift = 0
        for candidate in range(max_shift + 1):
            if "\n" in (combined[candidate], combined[candidate + len(text) - 1]):
                shift = candidate
                break
        prefix = previous.left + text[:shift]
        moved = combined[shift : shift + len(text)]
        suffix = following.left[shift:]
        spans[index - 1 : index + 2] = [
            _DiffSpan(prefix, prefix, False),
            replace(span, left=moved) if span.left else replace(span, right=moved),
            _DiffSpan(suffix, suffix, False),
        ]
    return spans


def _is_significant(word: str) -> bool:
    return word[0].isalnum() or (len(word) > 1 and not word.isspace())


def _group_pieces(pieces: Iterable[tuple[str, bool]]) -> tuple[DiffPiece, ...]:
    visible = [piece for piece in pieces if piece[0]]
    groups = groupby(visible, key=lambda piece: piece[1])
    return tuple(
        DiffPiece("".join(text for text, _ in group), changed) for changed, group in groups
    )
