"""`make compat`: every row of the table with the real thing, and what came of it."""

import argparse
import asyncio
import os
import sys
import time
import traceback

from tests.compat import table
from tests.compat.rows import CHECK_SECONDS, ROWS, NotTried, Result, Row, SaysWhyNot

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.compat", description=__doc__)
    parser.add_argument("--only", nargs="+", help="rows whose name or area contains this")
    parser.add_argument("--write", action="store_true", help="write docs/compatibility.md")
    options = parser.parse_args()
    from tests.compat import checks  # noqa: F401 - adds the rows

    wanted = [row for row in ROWS if _is_wanted(row, options.only)]
    results = []
    for row in wanted:
        results.append(asyncio.run(_try(row)))
        sys.stdout.write(f"{table.line(results[-1])}\n")
        sys.stdout.flush()
    if options.write:
        tried = {id(result.row): result for result in results}
        table.PAGE.write_text(
            table.page([tried.get(id(row)) or _left_out(row) for row in ROWS])
        )
    failed = sum(result.outcome == "fails" for result in results)
    sys.stdout.write(f"\n{len(results)} rows, {failed} failed.\n")
    sys.exit(1 if failed else 0)


def _is_wanted(row: Row, only: list[str] | None) -> bool:
    about = f"{row.area} {row.name}".lower()
    return not only or any(word.lower() in about for word in only)


def _left_out(row: Row) -> Result:
    return Result(row=row, outcome="not tried", detail="not part of this run")


async def _try(row: Row) -> Result:
    began = time.monotonic()
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            outcome, detail = "works", await row.check()
    except NotTried as reason:
        outcome, detail = "not tried", str(reason)
    except SaysWhyNot as reason:
        outcome, detail = "says why not", str(reason)
    except Exception as error:
        traceback.print_exc()
        outcome, detail = "fails", f"{type(error).__name__}: {error}".splitlines()[0]
    took = time.monotonic() - began
    return Result(row=row, outcome=outcome, detail=detail, seconds=took)


if __name__ == "__main__":
    main()
