"""The results as a table: printed as they come, and as docs/compatibility.md."""

from collections.abc import Sequence
from textwrap import shorten
from typing import cast

from tests.compat.packages import ROOT
from tests.compat.rows import Outcome, Result, Row

PAGE = ROOT / "docs" / "compatibility.md"
CONFORMANCE = "Conformance"  # the area of official suites
CONFORMANCE_PAGE = ROOT / "docs" / "conformance.md"
HEADER = """\
# Compatibility

What other people's software does with Ashiato. `make compat` installs the software and uses it
as a user would; recipes are run as their pages have them. `make compat ONLY=memory` runs some
rows, `WRITE=1` writes this page with the last result of each row. *Works* means that every
check in the row passed. *Says why not* means that Ashiato refuses in the sentence given. *Not
tried* means that the machine lacked something, or that the row wasn't run yet. *Real* says
what was the real thing in a row, and *Played back* what was scripted or recorded instead.
"""
COLUMNS = """\
| What | Version | Result | Seen | Real | Played back | Tried on |
|---|---|---|---|---|---|---|
"""
CONFORMANCE_HEADER = """\
# Conformance

The official test suites of the protocols that Ashiato speaks, run against a new installation,
or with Ashiato as the client. `make conformance` runs them and writes this page. Two of them
are repositories: set `ASHIATO_A2A_TCK` to a checkout of a2aproject/a2a-tck, and
`ASHIATO_OPEN_RESPONSES` to one of openresponses/openresponses.

| Suite | Version | Passed | Tried on |
|---|---|---|---|
"""


def line(result: Result) -> str:
    """Return a result as one line for the terminal."""
    row = result.row
    about = f"{row.area}: {row.name} {row.version}".rstrip()
    return f"{result.outcome:12}  {result.seconds:5.1f} s  {about:48}  {result.detail}"


def page(results: Sequence[Result]) -> str:
    """Return the page for docs/."""
    parts = [HEADER]
    for area in dict.fromkeys(result.row.area for result in results):
        parts.append(f"\n## {area}\n\n{COLUMNS}")
        parts += [_row(result) for result in results if result.row.area == area]
    return "".join(parts)


def conformance_page(results: Sequence[Result]) -> str:
    """Return the page of the official suites for docs/."""
    parts = [CONFORMANCE_HEADER]
    for result in results:
        passed = result.detail if result.outcome == "works" else result.outcome
        cells = (result.row.name, result.row.version, passed, result.day)
        parts.append(f"| {' | '.join(cells)} |\n")
    noted = [result.row for result in results if result.row.notes]
    if noted:
        parts.append("\n## What isn't run\n\n")
        parts += [f"- **{row.name}**: {row.notes}\n" for row in noted]
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
