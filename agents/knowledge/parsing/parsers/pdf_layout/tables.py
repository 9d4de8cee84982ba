"""Tables on a page: between ruling lines, or of words that stand under each other."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from ..values import WorkLimit
from .rulings import Ruling, Rulings
from .words import HYPHEN, Line, Word

TOUCH = 4.0  # between lines that meet
COMPARED_PER_STEP = 2
MAX_CELLS = 20_000
MAX_RULED = 400  # lines of one table, in each direction
CELL_GAP = 0.75  # of a line's height: at least this is between columns
ROW_GAP = 2.6  # of a line's height: more ends a table
MIN_ROWS = 3
MIN_GUTTER = 3.0
PROSE_CHARS = 45  # half of the cells of a table have fewer
MIN_FILLED = 0.5
MIN_WORD_ROWS = 6  # with as many, also the space between words can separate columns
MAX_SPANNING = 0.25  # of the rows, with text across columns
MARK = re.compile(r"^(?:[^\w\s$€£¥%]{1,3}|o|\(?(?:\d{1,3}|[a-zA-Z])[.)]|\[\d+\]|[①-⑳])$")
# What stands at the right margin: numbers of equations, kinds of definitions.
MARGIN = re.compile(r"^(?:\(\S{1,8}\)|\[[^\]]*\])$")
DRAWN = re.compile(r"(?:\.\s?){5,}|[+|][-=+]{3,}|^\|$|^\|.*\|$")


@dataclass(slots=True)
class Table:
    """A table and its place among the lines of the page."""

    rows: list[list[str]]
    order: int
    words: set[int] = field(default_factory=set)  # the ids of those that are in it


@dataclass(slots=True)
class _Grid:
    """Where a table's columns and rows end, and which lines are drawn between its cells."""

    xs: list[float]
    ys: list[float]  # from the bottom up
    horizontal: list[Ruling]
    vertical: list[Ruling]


def ruled_tables(lines: Sequence[Line], rulings: Rulings, work: WorkLimit) -> list[Table]:
    """Return the tables whose columns are separated by lines."""
    tables: list[Table] = []
    taken: set[int] = set()
    for grid in sorted(_grids(rulings, work), key=lambda grid: len(grid.xs) * len(grid.ys)):
        left, right, bottom, top = grid.xs[0], grid.xs[-1], grid.ys[0], grid.ys[-1]
        inside: list[Word] = []
        order = -1
        for number, line in enumerate(lines):
            if not bottom - TOUCH < line.middle < top + TOUCH:
                continue
            for word in line.words:
                if (
                    id(word) not in taken
                    and left - TOUCH < word.center < right + TOUCH
                    and bottom < word.middle < top
                ):
                    inside.append(word)
                    order = number if order < 0 else order
        lines_per_cell = len(grid.horizontal) + len(grid.vertical)
        compared = len(grid.xs) * len(grid.ys) * lines_per_cell + len(grid.ys) * len(inside)
        work.spend((compared + len(lines)) // COMPARED_PER_STEP)
        rows = _fill(grid, inside)
        if _is_table(rows):
            words = {id(word) for word in inside}
            taken |= words
            tables.append(Table(rows, order, words))
    return tables


def _grids(rulings: Rulings, work: WorkLimit) -> Iterator[_Grid]:
    """Yield the grids of lines that touch each other."""
    pending = list(rulings.vertical)
    unused = list(rulings.horizontal)
    while pending:
        vertical = [pending.pop()]
        horizontal: list[Ruling] = []
        position = 0
        while position < len(vertical):
            upright = vertical[position]
            position += 1
            work.spend(len(unused) // COMPARED_PER_STEP)
            crossing = [flat for flat in unused if _touches(flat, upright)]
            unused = [flat for flat in unused if not _touches(flat, upright)]
            horizontal += crossing
            for flat in crossing:
                work.spend(len(pending) // COMPARED_PER_STEP)
                vertical += [other for other in pending if _touches(flat, other)]
                pending = [other for other in pending if not _touches(flat, other)]
        if len(horizontal) < 2 or max(len(horizontal), len(vertical)) > MAX_RULED:
            continue
        # A table may be open at its sides.
        ends = [min(flat.start for flat in horizontal), max(flat.end for flat in horizontal)]
        xs = _distinct([*(upright.position for upright in vertical), *ends])
        ends = [
            min(upright.start for upright in vertical),
            max(upright.end for upright in vertical),
        ]
        ys = _distinct([*(flat.position for flat in horizontal), *ends])
        if len(xs) > 2 and len(ys) > 1 and len(xs) * len(ys) <= MAX_CELLS:
            yield _Grid(xs, ys, horizontal, vertical)


def _touches(flat: Ruling, upright: Ruling) -> bool:
    return (
        flat.start - TOUCH <= upright.position <= flat.end + TOUCH
        and upright.start - TOUCH <= flat.position <= upright.end + TOUCH
    )


def _distinct(positions: list[float]) -> list[float]:
    distinct: list[float] = []
    for position in sorted(positions):
        if not distinct or position - distinct[-1] > TOUCH:
            distinct.append(position)
    return distinct


def _fill(grid: _Grid, words: list[Word]) -> list[list[str]]:
    """Return the rows of a grid from the top; what reaches over several is in each of them."""
    width = len(grid.xs) - 1
    height = len(grid.ys) - 1
    owners = _owners(grid)
    cells: dict[tuple[int, int], list[Word]] = {}
    for word in words:
        column = min(max(bisect_right(grid.xs, word.center) - 1, 0), width - 1)
        row = min(max(bisect_right(grid.ys, word.middle) - 1, 0), height - 1)
        cells.setdefault(owners[row, column], []).append(word)
    rows: list[list[str]] = []
    for row in reversed(range(height)):
        texts = ["" for _ in range(width)]
        for column in range(width):
            owner = owners[row, column]
            if owner[1] == column:
                texts[column] = cell_text(cells.get(owner, []))
        rows.append(texts)
        band = [word for word in words if grid.ys[row] < word.middle <= grid.ys[row + 1]]
        # A body without lines between its rows.
        if height <= 3 and (split := _rows_of_band(grid, band)):
            rows[-1:] = split
    return rows


def _owners(grid: _Grid) -> dict[tuple[int, int], tuple[int, int]]:
    """Return for each cell the one that its text belongs to, where no line separates them."""
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    for row in reversed(range(len(grid.ys) - 1)):
        middle = (grid.ys[row] + grid.ys[row + 1]) / 2
        for column in range(len(grid.xs) - 1):
            center = (grid.xs[column] + grid.xs[column + 1]) / 2
            owner = (row, column)
            if column and not _is_ruled(grid.vertical, grid.xs[column], middle):
                owner = owners[row, column - 1]
            elif (row + 1, column) in owners and not _is_ruled(
                grid.horizontal, grid.ys[row + 1], center
            ):
                owner = owners[row + 1, column]
                owner = owner if owner[1] == column else (row, column)
            owners[row, column] = owner
    return owners


def _is_ruled(rulings: list[Ruling], position: float, crossing: float) -> bool:
    return any(
        abs(ruling.position - position) <= TOUCH and ruling.start <= crossing <= ruling.end
        for ruling in rulings
    )


def _rows_of_band(grid: _Grid, words: list[Word]) -> list[list[str]]:
    """Return the rows between two lines of a table whose rows aren't separated by lines."""
    rows: list[list[str]] = []
    for line in word_rows(words):
        cells: list[list[Word]] = [[] for _ in grid.xs[1:]]
        for word in line:
            column = min(max(bisect_right(grid.xs, word.center) - 1, 0), len(cells) - 1)
            cells[column].append(word)
        rows.append([cell_text(cell) for cell in cells])
    if len(rows) < MIN_ROWS:
        return []
    first_filled = sum(bool(row[0]) for row in rows)
    filled = median(sum(map(bool, row)) for row in rows)
    return rows if first_filled * 3 >= len(rows) * 2 and filled >= 2 else []


def word_rows(words: Sequence[Word]) -> list[list[Word]]:
    """Return words in rows from the top, each from the left."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.middle):
        height = word.top - word.bottom
        if not rows or rows[-1][0].middle - word.middle > max(height * 0.5, 1):
            rows.append([])
        rows[-1].append(word)
    for row in rows:
        row.sort(key=lambda word: word.left)
    return rows


def cell_text(words: Sequence[Word]) -> str:
    """Return the text of a cell, whose words may be on several lines."""
    text = ""
    for row in word_rows(words):
        line = " ".join(word.text for word in row)
        before = text[:-1] if text.endswith(HYPHEN) else f"{text} " if text else ""
        text = before + line
    return text.replace(HYPHEN, "-")


def _is_table(rows: list[list[str]]) -> bool:
    used_columns = {
        number for row in rows for number, text in enumerate(row) if text and len(text) < 2_000
    }
    used_rows = [row for row in rows if any(row)]
    return len(used_columns) > 1 and len(used_rows) > 1


# Tables without lines


@dataclass(slots=True)
class _Row:
    """Pieces of text at one height."""

    cells: list[Line]
    order: int

    @property
    def top(self) -> float:
        return max(cell.top for cell in self.cells)

    @property
    def bottom(self) -> float:
        return min(cell.bottom for cell in self.cells)

    @property
    def height(self) -> float:
        return max(cell.height for cell in self.cells)


def split_at_gaps(line: Line, gap: float = CELL_GAP) -> list[Line]:
    """Return the pieces of a line that are further from each other than words."""
    pieces: list[list[Word]] = [[line.words[0]]]
    for before, word in zip(line.words, line.words[1:], strict=False):
        if word.left - before.right > max(line.height * gap, MIN_GUTTER):
            pieces.append([])
        pieces[-1].append(word)
    return [Line(piece) for piece in pieces] if len(pieces) > 1 else [line]


def aligned_tables(lines: Sequence[Line]) -> list[Table]:
    """Return the tables whose columns are only separated by space."""
    pieces = [
        (number, piece)
        for number, line in enumerate(lines)
        if line.height > 0 and line.right > line.left
        for piece in split_at_gaps(line)
    ]
    rows: list[_Row] = []
    for number, piece in sorted(pieces, key=lambda pair: -pair[1].middle):
        if rows and _is_beside(rows[-1].cells[0], piece):
            rows[-1].cells.append(piece)
            rows[-1].order = min(rows[-1].order, number)
        else:
            rows.append(_Row([piece], number))
    tables: list[Table] = []
    for run in _runs(rows):
        table = _aligned_table(run)
        if table is not None:
            tables.append(table)
    return tables


def _is_beside(first: Line, second: Line) -> bool:
    return abs(first.middle - second.middle) < min(first.height, second.height) * 0.5


def _runs(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Yield rows with several pieces that follow each other, and the lines between them."""
    run: list[_Row] = []
    singles: list[_Row] = []
    for row in rows:
        is_near = not run or (run + singles)[-1].bottom - row.top < row.height * (ROW_GAP - 1)
        if len(row.cells) > 1:
            if run and (not is_near or len(singles) > 2):
                yield run
                run = []
                singles = []
            run += [*singles, row] if run else [row]
            singles = []
        elif run:
            is_prose = len(row.cells[0].text) > PROSE_CHARS
            if is_near and not (is_prose and row.cells[0].left <= run[0].cells[0].right):
                singles.append(row)
            else:
                yield run
                run = []
                singles = []
    if run:
        yield run


def _aligned_table(run: list[_Row]) -> Table | None:
    multiple = [row for row in run if len(row.cells) > 1]
    if len(multiple) < MIN_ROWS:
        return None
    columns = _columns([row.cells for row in multiple])
    if len(columns) < 2:
        return None
    spanning = sum(
        piece.left < columns[0][1] and piece.right > columns[1][0]
        for row in run
        for piece in row.cells
    )
    if spanning > len(run) * MAX_SPANNING:
        return None
    grid: list[list[list[Word]]] = []
    if len(multiple) >= MIN_WORD_ROWS:
        by_words = _columns(
            [[w for piece in row.cells for w in piece.words] for row in multiple]
        )
        names = [word.text for row in multiple for piece in row.cells for word in piece.words]
        if sum(map(_is_figure, names)) * 2 > len(names) and len(by_words) > len(columns):
            columns = by_words
    ends = [end for _, end in columns[:-1]]
    for row in run:
        cells: list[list[Word]] = [[] for _ in columns]
        for piece in row.cells:
            for word in piece.words:
                cells[bisect_right(ends, word.left)].append(word)
        grid.append(cells)
    texts = _joined_rows(run, [[cell_text(cell) for cell in row] for row in grid])
    if not _is_tabular(texts):
        return None
    words = {id(word) for row in run for piece in row.cells for word in piece.words}
    return Table(texts, min(row.order for row in run), words)


def _is_figure(text: str) -> bool:
    return sum(map(str.isdigit, text)) * 2 >= len(text)


def _columns(rows: Sequence[Sequence[Line | Word]]) -> list[tuple[float, float]]:
    """Return where columns begin and end: where hardly any row has text is a gap."""
    ends = sorted(
        [(piece.left, 1) for row in rows for piece in row]
        + [(piece.right, -1) for row in rows for piece in row]
    )
    allowed = len(rows) // 8
    columns: list[tuple[float, float]] = []
    covering = 0
    start = 0.0
    for position, change in ends:
        before = covering
        covering += change
        if before <= allowed < covering:
            start = position
        elif covering <= allowed < before:
            if columns and start - columns[-1][1] < MIN_GUTTER:
                columns[-1] = (columns[-1][0], position)
            else:
                columns.append((start, position))
    return columns


def _joined_rows(run: list[_Row], texts: list[list[str]]) -> list[list[str]]:
    """Return rows with those added to the one above that only continue its cells."""
    spacings = [above.top - below.top for above, below in zip(run, run[1:], strict=False)]
    usual = median(spacings) if spacings else 0.0
    joined: list[list[str]] = []
    for number, row in enumerate(texts):
        filled = [column for column, text in enumerate(row) if text]
        if (
            joined
            and filled
            and filled[0] > 0
            and len(filled) * 2 <= len(row)
            and spacings[number - 1] <= max(usual, run[number].height * 1.3)
            and all(joined[-1][column] for column in filled)
        ):
            for column in filled:
                joined[-1][column] = f"{joined[-1][column]} {row[column]}"
        else:
            joined.append(list(row))
    return joined


def _is_tabular(rows: list[list[str]]) -> bool:
    """Whether cells are short and filled as those of a table, not columns of text or lists."""
    cells = [text for row in rows for text in row if text]
    full = [row for row in rows if sum(map(bool, row)) > 1]
    if len(full) < MIN_ROWS or len(full) * 2 < len(rows):
        return False
    if len(cells) < MIN_FILLED * len(rows) * len(rows[0]):
        return False
    if sum(bool(DRAWN.search(text)) for text in cells) * 4 > len(full):
        return False
    for column in range(len(rows[0])):
        texts = [row[column] for row in full if row[column]]
        pattern = MARGIN if column == len(rows[0]) - 1 else MARK
        if sum(bool(pattern.match(text)) for text in texts) * 3 > len(texts):
            return False
    if len(rows[0]) < 4:
        # Lines of prose beside each other.
        lengths = [median(len(row[column]) for row in full) for column in range(len(rows[0]))]
        if min(lengths) > PROSE_CHARS / 2:
            return False
    return median(map(len, cells)) < PROSE_CHARS
