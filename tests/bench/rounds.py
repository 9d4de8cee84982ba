"""Figures of several rounds, as table rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    rounds: int
    runs: int
    at_once: tuple[int, ...]
    chats: tuple[int, ...]
    sockets: tuple[int, ...] = ()
    idle: float = 0
    messages: tuple[int, ...] = ()
    sessions: tuple[int, ...] = ()
    traces: int = 0
    plans: tuple[int, ...] = ()
    prose: int = 0
    documents: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """One peer's figures at one level in one round."""

    round: int
    peer: str
    level: int
    figures: Mapping[str, float]


def rows(readings: Iterable[Reading], reference: str, costs: Sequence[str]) -> list[dict]:
    """Return a row per level and peer: medians, and costs relative to the reference."""
    by_place = {(r.level, r.peer, r.round): r.figures for r in readings}
    places = list(dict.fromkeys((level, peer) for level, peer, _ in by_place))
    found = []
    for level, peer in sorted(places, key=lambda place: place[0]):
        mine = {n: f for (at, who, n), f in by_place.items() if (at, who) == (level, peer)}
        theirs = {n: by_place[level, reference, n] for n in mine}
        row = {"peer": peer, "at once": level} | medians(mine.values())
        for cost in costs:
            row[f"{cost} ×"] = _rounded_median(mine[n][cost] / theirs[n][cost] for n in mine)
        found.append(row)
    return found


def medians(figures: Iterable[Mapping[str, float]]) -> dict[str, float]:
    figures = list(figures)
    return {name: _rounded_median(each[name] for each in figures) for name in figures[0]}


def _rounded_median(values: Iterable[float]) -> float:
    return round(median(values), 3)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the percentile; 0 if there are no values."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def format_table(about: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Format rows as a table with a caption."""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in cells
    ]
    return "\n".join([about, "", *lines, ""])


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
