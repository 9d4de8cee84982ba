"""The results as a table: printed as they come, and as docs/compatibility.md."""

from collections.abc import Sequence
from itertools import groupby
from textwrap import shorten
from typing import cast

from tests.compat.packages import ROOT
from tests.compat.rows import Outcome, Result, Row

PAGE = ROOT / "docs" / "compatibility.md"
HEADER = """\
# Compatibility

What other people's software does with Ashiato. `make compat` installs the software and uses it
as a user would. `make compat ONLY=memory` runs some rows, `WRITE=1` writes this page with the
last result of each row. *Works* means that every check in the row passed. *Says why not* means
that Ashiato refuses in the sentence given. *Not tried* means that the machine lacked something,
or that the row wasn't run yet. *Real* says what was the real thing in a row, and *Played back*
what was scripted or recorded instead.
"""
COLUMNS = """\
| What | Version | Result | Seen | Real | Played back | Tried on |
|---|---|---|---|---|---|---|
"""


def line(result: Result) -> str:
    """Return a result as one line for the terminal."""
    row = result.row
    about = f"{row.area}: {row.name} {row.version}".rstrip()
    return f"{result.outcome:12}  {result.seconds:5.1f} s  {about:48}  {result.detail}"


def page(results: Sequence[Result]) -> str:
    """Return the page for docs/."""
    parts = [HEADER]
    for area, found in groupby(results, key=lambda result: result.row.area):
        parts.append(f"\n## {area}\n\n{COLUMNS}")
        parts += [_row(result) for result in found]
    return "".join(parts)


def read(text: str, row: Row) -> Result | None:
    """Return what the page says of a row with this version."""
    section = text.partition(f"\n## {row.area}\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == [row.name, row.version]:
            outcome = cast(Outcome, cells[2])
            return Result(row=row, outcome=outcome, detail=cells[3], day=cells[-1])
    return None


def _row(result: Result) -> str:
    row = result.row
    seen = (row.name, row.version, result.outcome, shorten(result.detail, 120))
    cells = (*seen, row.real, row.played, result.day)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"
