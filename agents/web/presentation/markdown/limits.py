"""What rendering costs, and how much of it a text may use."""

from typing import NamedTuple

# Limits per text. Beyond them it is plain text, or not highlighted: a mark costs up to 30 µs, a
# line 50 µs, a cell 20 µs, and a character of code 25 µs.
MAX_MARKS = 10_000
MAX_LINES = 6_000
MAX_PIPES = 20_000  # separators of table cells
MAX_TEXT_CHARS = 400_000
# What makes Markdown slow to parse, in equivalents of plain characters.
MARKS = b"[]!*_~`<&\\$"
MARK_WEIGHT = 16
BREAKS = b"\n|"
BREAK_WEIGHT = 10


class LimitUsage(NamedTuple):
    """What the blocks after a part of a text need of it: used limits and open headings."""

    marks: int = 0
    highlighted: int = 0
    top_level: int = 3  # of the outermost heading, below those of the page
    headings: tuple[int, ...] = ()  # levels in the text, from the outermost to the last heading


def weight(text: str) -> int:
    """Return the cost of rendering, in equivalents of plain characters."""
    # Bytes are counted four times as fast, and every streamed piece is weighed.
    data = text.encode(errors="replace")
    if not (sign_count := _count(data, MARKS + BREAKS)):
        return len(text)
    marks = _count(data, MARKS)
    return len(text) + MARK_WEIGHT * marks + BREAK_WEIGHT * (sign_count - marks)


def max_weight(chars: int) -> int:
    """Return the most that a text of this length can weigh."""
    return (1 + MARK_WEIGHT) * chars


def count_marks(text: str) -> int:
    return _count(text.encode(errors="replace"), MARKS)


def _count(data: bytes, signs: bytes) -> int:
    return len(data) - len(data.translate(None, signs))


def is_too_large(text: str) -> bool:
    return exceeds_limits(len(text), text.count("\n"), text.count("|"))


def exceeds_limits(length: int, lines: int, bars: int) -> bool:
    return length > MAX_TEXT_CHARS or lines > MAX_LINES or bars > MAX_PIPES
