"""The horizontal and vertical lines that are drawn on a page, also as borders of boxes."""

from collections.abc import Iterator
from ctypes import c_float, c_int
from dataclasses import dataclass
from typing import Any

from ..values import WorkLimit

MAX_OBJECTS = 20_000
MAX_SEGMENTS = 20_000
MAX_RULINGS = 3_000
MAX_FORM_DEPTH = 4
OBJECT_STEPS = 4
THICKNESS = 3.0  # a filled box that is thinner is a line
MIN_LENGTH = 6.0
SLOPE = 1.0
TOLERANCE = 2.5
GAP = 3.0

Matrix = tuple[float, float, float, float, float, float]
Point = tuple[float, float]
IDENTITY: Matrix = (1, 0, 0, 1, 0, 0)


@dataclass(slots=True)
class Ruling:
    """A straight line: at `position` of the one axis, from start to end of the other."""

    position: float
    start: float
    end: float


@dataclass(slots=True)
class Rulings:
    """A page's lines; the positions of horizontal ones are heights."""

    horizontal: list[Ruling]
    vertical: list[Ruling]


def find_rulings(page: Any, work: WorkLimit) -> Rulings:
    """Return the lines of a page; none if it has so many that it is a drawing."""
    horizontal: list[Ruling] = []
    vertical: list[Ruling] = []
    width, height = page.get_size()
    for first, second in _edges(page, work):
        across = abs(first[0] - second[0])
        along = abs(first[1] - second[1])
        if along <= SLOPE and MIN_LENGTH <= across <= width * 1.1:
            ends = sorted((first[0], second[0]))
            horizontal.append(Ruling((first[1] + second[1]) / 2, *ends))
        elif across <= SLOPE and MIN_LENGTH <= along <= height * 1.1:
            ends = sorted((first[1], second[1]))
            vertical.append(Ruling((first[0] + second[0]) / 2, *ends))
    if max(len(horizontal), len(vertical)) > MAX_RULINGS:
        return Rulings([], [])
    return Rulings(_joined(horizontal), _joined(vertical))


def _joined(rulings: list[Ruling]) -> list[Ruling]:
    """Return lines without their doubles, and pieces of a line as one."""
    rows: list[list[Ruling]] = []
    for ruling in sorted(rulings, key=lambda ruling: ruling.position):
        if not rows or ruling.position - rows[-1][0].position > TOLERANCE:
            rows.append([])
        rows[-1].append(ruling)
    joined: list[Ruling] = []
    for row in rows:
        row.sort(key=lambda ruling: ruling.start)
        pieces = [row[0]]
        for ruling in row[1:]:
            if ruling.start <= pieces[-1].end + GAP:
                pieces[-1].end = max(pieces[-1].end, ruling.end)
            else:
                pieces.append(ruling)
        joined += pieces
    return joined


def _edges(page: Any, work: WorkLimit) -> Iterator[tuple[Point, Point]]:
    from pypdfium2 import raw

    segments_left = MAX_SEGMENTS
    for path, matrix in _paths(page, work):
        fill_mode = c_int()
        is_stroked = c_int()
        raw.FPDFPath_GetDrawMode(path, fill_mode, is_stroked)
        count = raw.FPDFPath_CountSegments(path)
        segments_left -= max(count, 0)
        if segments_left < 0:
            return
        if not (fill_mode.value or is_stroked.value):
            continue
        work.spend(max(count, 0) * OBJECT_STEPS)
        for points in _outlines(path, count, matrix):
            xs = [x for x, _ in points]
            ys = [y for _, y in points]
            left, right, bottom, top = min(xs), max(xs), min(ys), max(ys)
            if not is_stroked.value and top - bottom <= THICKNESS:
                yield (left, (top + bottom) / 2), (right, (top + bottom) / 2)
            elif not is_stroked.value and right - left <= THICKNESS:
                yield ((left + right) / 2, bottom), ((left + right) / 2, top)
            else:
                yield from zip(points, points[1:], strict=False)


def _outlines(path: Any, count: int, matrix: Matrix) -> Iterator[list[Point]]:
    """Yield the corners of each outline of a path, on the page; none of those with curves."""
    from pypdfium2 import raw

    points: list[Point] = []
    is_straight = True
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, number)
        x = c_float()
        y = c_float()
        if not raw.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            if len(points) > 1 and is_straight:
                yield points
            points = []
            is_straight = True
        elif kind == raw.FPDF_SEGMENT_BEZIERTO:
            is_straight = False
        a, b, c, d, e, f = matrix
        points.append((a * x.value + c * y.value + e, b * x.value + d * y.value + f))
        if raw.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if len(points) > 1 and is_straight:
        yield points


def _paths(page: Any, work: WorkLimit) -> Iterator[tuple[Any, Matrix]]:
    """Yield the paths of a page and of the forms in it, with how each is placed."""
    from pypdfium2 import raw

    pending = [
        (raw.FPDFPage_GetObject(page, number), IDENTITY, 0)
        for number in range(min(raw.FPDFPage_CountObjects(page), MAX_OBJECTS))
    ]
    pending.reverse()
    left = MAX_OBJECTS
    while pending and left:
        left -= 1
        work.spend(OBJECT_STEPS)
        item, outer, depth = pending.pop()
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            yield item, _placed(item, outer)
        elif kind == raw.FPDF_PAGEOBJ_FORM and depth < MAX_FORM_DEPTH:
            matrix = _placed(item, outer)
            count = min(max(raw.FPDFFormObj_CountObjects(item), 0), left)
            pending += [
                (raw.FPDFFormObj_GetObject(item, number), matrix, depth + 1)
                for number in reversed(range(count))
            ]


def _placed(item: Any, outer: Matrix) -> Matrix:
    """Return an object's matrix, followed by that of what it is in."""
    from pypdfium2 import raw

    own = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(item, own):
        return outer
    a, b, c, d, e, f = outer
    return (
        a * own.a + c * own.b,
        b * own.a + d * own.b,
        a * own.c + c * own.d,
        b * own.c + d * own.d,
        a * own.e + c * own.f + e,
        b * own.e + d * own.f + f,
    )
