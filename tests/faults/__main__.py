"""`make faults`: runs every row of the table as often as it says, and reports the results."""

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.bench import accounts  # noqa: F401  (sets Django up)

from tests.faults import (  # noqa: F401  # isort: skip
    job_faults,
    kill_faults,
    load_faults,
    machine_faults,
    mcp_faults,
    model_faults,
    page_faults,
    service_faults,
    storage_faults,
)
from tests.faults.rows import ROWS, Row
from tests.faults.testbed import NotAvailable, Result, Testbed
from tests.faults.testbed_kinds import open_testbed

MAX_REPORTED = 20


def main() -> None:
    # Otherwise a kill would leave the servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rows = _chosen()
    began = time.monotonic()
    results: dict[str, Result] = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        _play(kind, [row for row in rows if row.kind == kind], results)
    histories = sum(result.histories for result in results.values())
    wrong = [f"{id} {what}" for id, found in results.items() for what in found.violations]
    minutes = (time.monotonic() - began) / 60
    _say(f"\n{histories} histories, {len(wrong)} violations, {minutes:.1f} minutes.")
    _say("\n".join(wrong[:MAX_REPORTED]))
    sys.exit(1 if wrong else 0)


def _chosen() -> list[Row]:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(ROWS), help="these rows alone")
    only = parser.parse_args().only
    return [ROWS[id] for id in sorted(ROWS) if only is None or id in only]


def _play(kind: str, rows: list[Row], results: dict[str, Result]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="ashiato-faults-"))
    try:
        with open_testbed(kind, folder, people=10, chats=80) as testbed:
            asyncio.run(_played(testbed, rows, results))
    except NotAvailable as reason:
        _say(f"{', '.join(row.id for row in rows)}: not here: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _played(testbed: Testbed, rows: list[Row], results: dict[str, Result]) -> None:
    async with testbed:
        for row in rows:
            results[row.id] = await _result(testbed, row)


async def _result(testbed: Testbed, row: Row) -> Result:
    """Play a row; an aborted one is a violation too, an unplayable one is neither."""
    began = time.monotonic()
    result, note = Result(), ""
    try:
        result = await row.play(testbed, row.times)
    except NotAvailable as reason:
        note = f"  not here: {reason}"
    except Exception as error:
        traceback.print_exc()
        result.violations.append(f"broke off: {error}")
        await testbed.leave()
    took = time.monotonic() - began
    figures = f"{result.histories:5}  {len(result.violations):4}  {result.slowest:6.1f} s"
    _say(f"{row.id}  {figures}  {took:5.0f} s  {row.fault}{note}")
    return result


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _say("row  histories  violations  slowest  took  fault")
    main()
