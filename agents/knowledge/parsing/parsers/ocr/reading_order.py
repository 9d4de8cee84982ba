"""The order in which lines are read, also on a page that was scanned askew."""

import numpy as np

from .boxes import Points
from .models import Line


def rows(lines: list[Line]) -> list[list[str]]:
    """Return the texts from top to bottom; those at the same height are one row."""
    if not lines:
        return []
    along = _direction(lines)
    across = np.array([-along[1], along[0]])
    pieces: list[tuple[float, float, float, str]] = []
    for line in lines:
        middle = float((line.corners @ across).mean())
        left = float((line.corners @ along).min())
        height = float(np.linalg.norm(line.corners[3] - line.corners[0]))
        pieces.append((middle, left, height, line.text))
    text_rows: list[list[tuple[float, str]]] = []
    row_middle = 0.0
    row_height = 0.0
    for middle, left, height, text in sorted(pieces):
        if not text_rows or middle - row_middle > max(height, row_height) / 2:
            text_rows.append([])
            row_middle = middle
            row_height = height
        text_rows[-1].append((left, text))
    return [[text for _, text in sorted(row)] for row in text_rows]


def _direction(lines: list[Line]) -> Points:
    """Return the direction in which most of the text runs, of length 1."""
    directions = np.array([line.corners[1] - line.corners[0] for line in lines])
    quarters = np.round(np.arctan2(directions[:, 1], directions[:, 0]) / (np.pi / 2)) % 4
    lengths = np.linalg.norm(directions, axis=1)
    most = np.argmax(np.bincount(quarters.astype(int), weights=lengths))
    total: Points = directions[quarters == most].sum(axis=0)
    return total / np.linalg.norm(total)
