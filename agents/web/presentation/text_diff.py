"""What is different between two texts: by words, and where none are written, by scripts."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, takewhile

HIRAGANA, KATAKANA = "ぁ-ゟ", "゠-ヿㇰ-ㇿ"
KANJI = "々〆㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003ffff"
JAPANESE = re.compile(f"[{HIRAGANA}{KATAKANA}{KANJI}]+")
# Where a Japanese word ends is not written, but it hardly ever goes on in another script.
WORD = re.compile(
    rf"\s+|[{HIRAGANA}]+|[{KATAKANA}]+|[{KANJI}]+"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?"
    rf"|[^\W\d{HIRAGANA}{KATAKANA}{KANJI}][^\W{HIRAGANA}{KATAKANA}{KANJI}]*(?:['’]\w+)?|.",
    re.DOTALL,
)

MOST_PARTS = 3_000
MOST_WORK = 100_000
WORK_OF_A_PAGE = 600_000


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    is_changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Both texts whole, in pieces; in a coarse one some are too long to be read by words."""

    left: tuple[Piece, ...]
    right: tuple[Piece, ...]
    is_coarse: bool = False

    @property
    def is_none(self) -> bool:
        return not any(piece.is_changed for piece in (*self.left, *self.right))


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of both texts that is the same, or what one has in place of the other's."""

    left: str
    right: str
    is_changed: bool
    is_coarse: bool = False


class Reader:
    """Compares texts for one page, and no longer than a reader waits for it."""

    def __init__(self, work: int = WORK_OF_A_PAGE) -> None:
        self.work = work

    def compare(self, left: str, right: str) -> Difference:
        spans = self._by(words, left, right)
        if any(span.is_coarse for span in spans):
            blocks = self._by(_lines, left, right)
            spans = [span for block in blocks for span in self._within(block)]
        spans = _on_lines(_gathered(spans))
        return Difference(
            left=_joined((span.left, span.is_changed) for span in spans),
            right=_joined((span.right, span.is_changed) for span in spans),
            is_coarse=any(span.is_coarse for span in spans),
        )

    def _within(self, block: _Span) -> list[_Span]:
        return self._by(words, block.left, block.right) if block.is_changed else [block]

    def _by(self, parts: Callable[[str], list[str]], left: str, right: str) -> list[_Span]:
        """What both begin and end with is the same; only between is there work to do."""
        ours, theirs = parts(left), parts(right)
        start, end = _alike(ours, theirs)
        before, after = "".join(ours[:start]), "".join(ours[len(ours) - end :])
        ours, theirs = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
        spans = [_Span("".join(ours), "".join(theirs), is_changed=True, is_coarse=True)]
        if not ours or not theirs or self._affords(ours, theirs):
            spans = _matched(ours, theirs)
        return [_Span(before, before, False), *spans, _Span(after, after, False)]

    def _affords(self, left: Sequence[str], right: Sequence[str]) -> bool:
        """What is often in both texts is what makes matching them slow."""
        counts = Counter(right)
        work = len(left) + len(right) + sum(counts[part] for part in left if _tells(part))
        is_little = max(len(left), len(right)) <= MOST_PARTS and work <= MOST_WORK
        if not is_little or work > self.work:
            return False
        self.work -= work
        return True


def words(text: str) -> list[str]:
    return WORD.findall(text)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _alike(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """How many parts are the same at the beginning, and of the rest at the end."""
    start = _same(zip(left, right, strict=False))
    rest = min(len(left), len(right)) - start
    end = _same(zip(reversed(left), reversed(right), strict=False))
    return start, min(end, rest)


def _same(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _matched(left: Sequence[str], right: Sequence[str]) -> list[_Span]:
    """Blanks and marks alone say nothing: they match where the words around them do."""
    matcher = SequenceMatcher(lambda part: not _tells(part), left, right, autojunk=False)
    spans: list[_Span] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        ours, theirs = "".join(left[a:b]), "".join(right[c:d])
        spans += [_Span(ours, theirs, False)] if tag == "equal" else _narrowed(ours, theirs)
    return spans


def _narrowed(left: str, right: str) -> list[_Span]:
    """Japanese endings follow their words without a gap: what they share is not different."""
    if not (JAPANESE.fullmatch(left) and JAPANESE.fullmatch(right)):
        return [_Span(left, right, True)]
    start, end = _alike(left, right)
    a, b = len(left) - end, len(right) - end
    return [
        _Span(left[:start], right[:start], False),
        _Span(left[start:a], right[start:b], True),
        _Span(left[a:], right[b:], False),
    ]


def _gathered(spans: Iterable[_Span]) -> list[_Span]:
    """Little that is the same between much that is not would only make it hard to read."""
    found: list[_Span] = []
    for span in spans:
        if found and found[-1].is_changed == span.is_changed:
            span = _one([found.pop(), span])
        found.append(span)
        while span.is_changed and len(found) > 2 and _is_little(*found[-3:]):
            found[-3:] = [span := _one(found[-3:])]
    return found


def _one(spans: Sequence[_Span]) -> _Span:
    return _Span(
        "".join(span.left for span in spans),
        "".join(span.right for span in spans),
        is_changed=any(span.is_changed for span in spans),
        is_coarse=any(span.is_coarse for span in spans),
    )


def _is_little(before: _Span, same: _Span, after: _Span) -> bool:
    around = min(max(len(span.left), len(span.right)) for span in (before, after))
    return 2 * len(same.left) <= around


def _on_lines(spans: list[_Span]) -> list[_Span]:
    """What is added or left out may be read as whole lines, where it can be moved to be so."""
    for at in range(1, len(spans) - 1):
        before, span, after = spans[at - 1 : at + 2]
        if span.is_changed and not (span.left and span.right):
            spans[at - 1 : at + 2] = _moved(before.left, span, after.left)
    return spans


def _moved(before: str, span: _Span, after: str) -> list[_Span]:
    text = span.left or span.right
    both, last = text + after, len(text) - 1
    farthest = min(_same(zip(both, after, strict=False)), len(text))
    ways = (n for n in range(farthest + 1) if "\n" in (both[n], both[n + last]))
    n = next(ways, 0)
    start, end, moved = before + text[:n], after[n:], both[n : n + len(text)]
    changed = {"left": moved} if span.left else {"right": moved}
    return [_Span(start, start, False), replace(span, **changed), _Span(end, end, False)]


def _tells(part: str) -> bool:
    return part[0].isalnum() or (len(part) > 1 and not part.isspace())


def _joined(pieces: Iterable[tuple[str, bool]]) -> tuple[Piece, ...]:
    said = [piece for piece in pieces if piece[0]]
    groups = groupby(said, key=lambda piece: piece[1])
    return tuple(
        Piece("".join(text for text, _ in group), changed) for changed, group in groups
    )
