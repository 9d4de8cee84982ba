"""`make compat`: every row of the table with the real thing, and what came of it."""

import argparse
import asyncio
import os
import sys
import time
import traceback
from datetime import UTC, datetime

from tests.compat import leftovers, results, table
from tests.compat.rows import CHECK_SECONDS, ROWS, NotTried, Result, Row, SaysWhyNot

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.compat", description=__doc__)
    parser.add_argument("--only", nargs="+", help="rows whose name or area contains this")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write docs/compatibility.md with each row's last result",
    )
    options = parser.parse_args()
    from tests.compat import checks  # noqa: F401 - adds the rows

    leftovers.adopt_orphans()
    wanted = [row for row in ROWS if _is_wanted(row, options.only)]
    failed = 0
    for row in wanted:
        result = asyncio.run(_try(row))
        results.save(result)
        failed += result.outcome == "fails"
        sys.stdout.write(f"{table.line(result)}\n")
        sys.stdout.flush()
    if options.write:
        table.PAGE.write_text(table.page([results.last(row) for row in ROWS]))
    if options.write or all(row.area == table.CONFORMANCE for row in wanted):
        suites = [results.last(row) for row in ROWS if row.area == table.CONFORMANCE]
        table.CONFORMANCE_PAGE.write_text(table.conformance_page(suites))
    sys.stdout.write(f"\n{len(wanted)} rows, {failed} failed.\n")
    sys.exit(1 if failed else 0)


def _is_wanted(row: Row, only: list[str] | None) -> bool:
    about = f"{row.area} {row.name}".lower()
    return not only or any(word.lower() in about for word in only)


async def _try(row: Row) -> Result:
    began = time.monotonic()
    limit = asyncio.timeout(CHECK_SECONDS)
    try:
        async with limit:
            outcome, detail = "works", await row.check()
    except NotTried as reason:
        outcome, detail = "not tried", str(reason)
    except SaysWhyNot as reason:
        outcome, detail = "says why not", str(reason)
    except Exception as error:
        traceback.print_exc()
        # The page is published, so it has no paths of this machine.
        words = f"{type(error).__name__}: {error}".replace(f"{os.getcwd()}/", "")
        outcome, detail = "fails", words.splitlines()[0]
        if limit.expired():
            detail = f"not finished within {CHECK_SECONDS} s"
    if names := leftovers.end_leftovers():
        outcome, detail = "fails", f"left running: {', '.join(names)} ({detail})"
    took = time.monotonic() - began
    day = datetime.now(UTC).date().isoformat()
    return Result(row=row, outcome=outcome, detail=detail, seconds=took, day=day)


if __name__ == "__main__":
    main()
