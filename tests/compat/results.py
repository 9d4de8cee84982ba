"""The last result of each row, saved so that rows can be run one at a time."""

import json
from pathlib import Path

from tests.compat import table
from tests.compat.packages import HOME
from tests.compat.rows import Result, Row


def save(result: Result) -> None:
    saved = {"outcome": result.outcome, "detail": result.detail, "day": result.day}
    path = _path(result.row)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(saved))


def last(row: Row) -> Result:
    """Return a row's last result with this version: here, or else on the page."""
    path = _path(row)
    if path.exists():
        return Result(row=row, **json.loads(path.read_text()))
    untried = Result(row=row, outcome="not tried", detail="not part of a run yet")
    return table.read(table.PAGE.read_text(), row) or untried


def _path(row: Row) -> Path:
    name = f"{row.area} {row.name} {row.version}".replace("/", "-")
    return HOME / "results" / f"{name}.json"
