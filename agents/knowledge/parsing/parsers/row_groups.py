"""Writes rows of a sheet in groups, each a table with the header."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from . import markdown

MAX_ROWS = 20_000
MAX_COLUMNS = 200
MAX_CHARS = 3_000_000
GROUP_ROWS = 25
GROUP_CHARS = 1_000
HEADER_SEARCH = 20


def write(rows: Iterable[Sequence[str]]) -> tuple[str, bool]:
    """Return the rows as Markdown, and whether some were left out.

    The header is repeated, so that every passage says what its figures are.
    """
    numbered = (
        (number, cells)
        for number, row in enumerate(rows, start=1)
        if any(cells := [markdown.cell(text) for text in row[:MAX_COLUMNS]])
    )
    first_rows = list(islice(numbered, HEADER_SEARCH))
    # The header is the first row that is about as wide as the widest.
    widths = [sum(map(bool, row)) for _, row in first_rows]
    widest = max(widths, default=0)
    position = next((i for i, width in enumerate(widths) if width * 3 >= widest * 2), 0)
    blocks = ["\n".join(" ".join(filter(None, row)) for _, row in first_rows[:position])]
    size = 0
    header = first_rows[position][1] if first_rows else []
    for group in _groups(chain(first_rows[position + 1 :], numbered)):
        text = markdown.table([header, *(row for _, row in group)])
        last_row = group[-1][0]
        blocks.append(f"### Rows {group[0][0]}–{last_row}\n\n{text}")
        size += len(text)
        if size > MAX_CHARS or last_row >= MAX_ROWS:
            return markdown.join(blocks), True
    if len(blocks) == 1 and header:
        blocks.append(markdown.table([header]))
    return markdown.join(blocks), False


def _groups(
    rows: Iterator[tuple[int, list[str]]],
) -> Iterator[list[tuple[int, list[str]]]]:
    group: list[tuple[int, list[str]]] = []
    size = 0
    for number, row in rows:
        length = sum(map(len, row))
        if group and (len(group) == GROUP_ROWS or size + length > GROUP_CHARS):
            yield group
            group = []
            size = 0
        group.append((number, row))
        size += length
    if group:
        yield group
