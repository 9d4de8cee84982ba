"""Rectangles around lines of text, from the map that a detection model returns.

The map says for each pixel how likely it is inside a line, shrunk so that lines don't touch
(differentiable binarization, Liao et al. 2020).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_PIXEL_PROBABILITY = 0.3
MIN_LINE_PROBABILITY = 0.5
MIN_SIDE = 3
# How much larger than its shrunk form a line is: times its area, divided by its perimeter.
GROWTH = 1.6
# What is this much longer than wide is a line along its longer side.
LINE_RATIO = 1.5
MAX_LINES = 1_000

Point = tuple[int, int]
Points = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A rotated rectangle: `along` is the direction in which its text runs, of length 1."""

    center: Points
    along: Points
    width: float
    height: float

    @property
    def across(self) -> Points:
        return np.array([-self.along[1], self.along[0]])

    @property
    def corners(self) -> Points:
        """Its corners as (x, y): where the text begins, clockwise as the text sees it."""
        right = self.along * self.width / 2
        down = self.across * self.height / 2
        offsets = [-right - down, right - down, right + down, down - right]
        return self.center + np.array(offsets)

    def grow(self) -> "Rectangle":
        """Return the rectangle at the size of its text."""
        growth = self.width * self.height / (self.width + self.height) * GROWTH
        return Rectangle(
            center=self.center,
            along=self.along,
            width=self.width + growth,
            height=self.height + growth,
        )


def find_rectangles(probabilities: NDArray[np.float32]) -> list[Rectangle]:
    """Return the rectangles of lines of text, in pixels of the map."""
    is_text = probabilities > MIN_PIXEL_PROBABILITY
    # Letters of one line that are a pixel apart belong together.
    is_text[1:] |= is_text[:-1]
    is_text[:, 1:] |= is_text[:, :-1]
    rectangles: list[Rectangle] = []
    for points in _areas(is_text):
        hull = _convex_hull(points)
        if len(hull) < 3:
            continue
        rectangle = _smallest_rectangle(np.array(hull, dtype=np.float64))
        if min(rectangle.width, rectangle.height) < MIN_SIDE:
            continue
        if _mean_inside(probabilities, rectangle) < MIN_LINE_PROBABILITY:
            continue
        rectangles.append(rectangle.grow())
        if len(rectangles) == MAX_LINES:
            break
    return rectangles


def _areas(mask: NDArray[np.bool_]) -> Iterator[list[Point]]:
    """Yield each area of touching pixels, as both ends of its runs in each row."""
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row_numbers, first_columns = np.nonzero(edges == 1)
    rows = row_numbers.tolist()
    starts = first_columns.tolist()
    ends = np.nonzero(edges == -1)[1].tolist()
    # Runs that touch, also at a corner, get the same root (union-find).
    parents = list(range(len(rows)))

    def root(run: int) -> int:
        while parents[run] != run:
            parents[run] = parents[parents[run]]
            run = parents[run]
        return run

    above = 0
    for run, (row, start, end) in enumerate(zip(rows, starts, ends, strict=True)):
        while rows[above] < row - 1 or (rows[above] == row - 1 and ends[above] < start):
            above += 1
        touching = above
        while rows[touching] == row - 1 and starts[touching] <= end:
            parents[root(run)] = root(touching)
            touching += 1
    areas: dict[int, list[Point]] = {}
    for run, (row, start, end) in enumerate(zip(rows, starts, ends, strict=True)):
        areas.setdefault(root(run), []).extend([(start, row), (end - 1, row)])
    yield from areas.values()


def _convex_hull(points: list[Point]) -> list[Point]:
    """Return the corners of the hull of points that are sorted by row and column."""

    def half(ordered: list[Point]) -> list[Point]:
        chain: list[Point] = []
        for x, y in ordered:
            while len(chain) > 1:
                (x1, y1), (x2, y2) = chain[-2:]
                if (x2 - x1) * (y - y1) > (y2 - y1) * (x - x1):
                    break
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    return half(points) + half(points[::-1])


def _smallest_rectangle(hull: Points) -> Rectangle:
    """Return the smallest rectangle around a hull; one of its sides is on one of the hull."""
    sides = np.roll(hull, -1, axis=0) - hull
    directions = sides / np.linalg.norm(sides, axis=1, keepdims=True)
    normals = np.column_stack([-directions[:, 1], directions[:, 0]])
    along = hull @ directions.T
    across = hull @ normals.T
    widths = np.ptp(along, axis=0)
    heights = np.ptp(across, axis=0)
    best = int(np.argmin(widths * heights))
    middle = (along[:, best].max() + along[:, best].min()) / 2
    center = directions[best] * middle
    center = center + normals[best] * (across[:, best].max() + across[:, best].min()) / 2
    size = {"width": float(widths[best]), "height": float(heights[best])}
    direction = directions[best]
    is_line = max(size.values()) >= LINE_RATIO * min(size.values())
    is_upright = abs(direction[0]) < abs(direction[1])
    if size["height"] > size["width"] if is_line else is_upright:
        direction = normals[best]
        size = {"width": size["height"], "height": size["width"]}
    # Text runs to the right or, in columns, downwards.
    if direction[np.argmax(np.abs(direction))] < 0:
        direction = -direction
    return Rectangle(center=center, along=direction, **size)


def _mean_inside(probabilities: NDArray[np.float32], rectangle: Rectangle) -> float:
    corners = rectangle.corners
    left, top = np.maximum(np.floor(corners.min(axis=0)).astype(int), 0)
    right, bottom = np.ceil(corners.max(axis=0)).astype(int) + 1
    window = probabilities[top:bottom, left:right]
    height, width = window.shape
    x = np.arange(left, left + width) - rectangle.center[0]
    y = np.arange(top, top + height)[:, np.newaxis] - rectangle.center[1]
    along = np.abs(x * rectangle.along[0] + y * rectangle.along[1])
    across = np.abs(x * rectangle.across[0] + y * rectangle.across[1])
    is_inside = (along <= rectangle.width / 2) & (across <= rectangle.height / 2)
    return float(window[is_inside].mean()) if is_inside.any() else 0.0
