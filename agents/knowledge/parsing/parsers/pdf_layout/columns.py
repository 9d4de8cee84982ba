"""The reading order of pages with two or three columns of text."""

from collections.abc import Sequence

from .tables import split_at_gaps
from .words import Line

MIN_LINES = 5  # in each column
MIN_CHARS = 18  # of half of a column's lines
STEPS = 60  # places at which a gap between columns is looked for
COLUMN_GAP = 0.6  # of a line's height


def in_reading_order(lines: Sequence[Line]) -> list[list[Line]]:
    """Return the lines of each column, where the file has them from side to side."""
    lines = list(lines)
    if len(lines) < MIN_LINES:
        return [lines]
    left = min(line.left for line in lines)
    right = max(line.right for line in lines)
    width = right - left
    if width <= 0:
        return [lines]
    pieces_of = {id(line): split_at_gaps(line, COLUMN_GAP) for line in lines}
    pieces = [piece for line in lines for piece in pieces_of[id(line)]]
    gutter = _gutter(pieces, left, width)
    if gutter is None:
        return [lines]
    ordered: list[list[Line]] = []
    band: list[Line] = []
    for line in [*lines, None]:
        halves = [] if line is None else _halves(line, pieces_of[id(line)], gutter)
        if halves:
            band += halves
            continue
        ordered += _by_column(band, gutter)
        band = []
        if line is not None:
            ordered.append([line])
    return ordered


def _gutter(pieces: list[Line], left: float, width: float) -> float | None:
    """Return where hardly any line crosses the middle of the page, between two columns."""
    best: tuple[float, float] | None = None
    for step in range(STEPS // 3, STEPS * 2 // 3 + 1):
        position = left + width * step / STEPS
        before = [piece for piece in pieces if piece.right <= position]
        after = [piece for piece in pieces if piece.left >= position]
        crossing = len(pieces) - len(before) - len(after)
        if min(len(before), len(after)) < MIN_LINES or crossing * 3 > len(pieces):
            continue
        if not (_is_prose(before) and _is_prose(after)):
            continue
        if best is None or crossing < best[0]:
            best = (crossing, position)
    return None if best is None else best[1]


def _is_prose(pieces: list[Line]) -> bool:
    lengths = sorted(len(piece.text) for piece in pieces)
    return lengths[len(lengths) // 2] >= MIN_CHARS


def _halves(line: Line, pieces: list[Line], gutter: float) -> list[Line]:
    """Return a line's pieces left and right of the gutter; none if it crosses it."""
    if any(piece.left < gutter < piece.right for piece in pieces):
        return []
    sides = [
        [word for word in line.words if word.center < gutter],
        [word for word in line.words if word.center >= gutter],
    ]
    if not all(sides):
        return [line]
    return [Line(side) for side in sides]


def _by_column(band: list[Line], gutter: float) -> list[list[Line]]:
    """Return the left column, then the right one."""
    lefts = [line for line in band if line.left < gutter]
    rights = [line for line in band if line.left >= gutter]
    if min(len(lefts), len(rights)) < MIN_LINES:
        return [band]
    return [lefts, rights]
