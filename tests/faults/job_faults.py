"""F44–F49: jobs whose processes end, or that take long while others wait."""

import asyncio
import sqlite3
from contextlib import closing, suppress

from tests.bench.processes import DiedEarly
from tests.faults.product import Product
from tests.faults.rows import order, row, unless
from tests.faults.testbed import Result, Testbed

KILLS = 5
ENDS = 60
INDEXING_HANGS = "before_document_index:1:sleep=60"
CLAIMED = ("reading", "indexing")
LONG_AGO = "2000-01-01 00:00:00"


@row("F44", "five kills before the first step of a run", times=1)
async def f44(testbed: Testbed, times: int) -> Result:
    result = Result()
    for _ in range(times):
        tab = await testbed.tab()
        await tab.ask("wait:6 words:5")
        for _ in range(KILLS):
            await asyncio.sleep(1)
            await asyncio.to_thread(testbed.product.kill)
            await testbed.restart()
        played = await testbed.played(ENDS)
        kept = await asyncio.to_thread(testbed.product.dump, [tab.chat])
        [run] = kept["runs"]
        played.violations += unless(run["status"] == "completed", f"it ended {run['status']}")
        result.add(played)
    return result


@row("F45", "five kills while a document is read", times=1)
async def f45(testbed: Testbed, times: int) -> Result:
    result = Result()
    for _ in range(times):
        # Before it is queued, or it may be read before the first kill.
        await _restart(testbed, INDEXING_HANGS)
        document = await _queue(testbed.product, "document")
        for _ in range(KILLS):
            await _restart(testbed, INDEXING_HANGS)
            await _until(testbed.product, f"{DOCUMENT} {document}", *CLAIMED)
        await _restart(testbed)
        status, problem = await _until(
            testbed.product, f"{DOCUMENT} {document}", "ready", "failed"
        )
        result.histories += 1
        result.violations += unless(status == "ready", f"it is {status}: {problem}")
    return result


@row("F46", "five kills while an import makes progress, and a deploy", times=1)
async def f46(testbed: Testbed, times: int) -> Result:
    result = Result()
    for _ in range(times):
        job = await _queue(testbed.product, "import")
        for _ in range(KILLS + 1):
            await _restart(testbed)
            [[imported, _]] = _rows(testbed.product, f"{IMPORTED} {job}")
            await _until(testbed.product, f"{IMPORTED} {job}", more_than=imported + 20)
        await asyncio.to_thread(testbed.product.stop)
        [[lease]] = _rows(testbed.product, f"{LEASE} {job}")
        await testbed.restart()
        status, problem = await _until(testbed.product, f"{IMPORT} {job}", "done", "failed")
        result.histories += 1
        result.violations += unless(status == "done", f"it is {status}: {problem}")
        result.violations += unless(lease == "", "the deploy kept its lease")
    return result


@row("F47", "a document that ends every process that reads it", times=1)
async def f47(testbed: Testbed, times: int) -> Result:
    """It is given up with the true reason, and the server survives it."""
    result = Result()
    for _ in range(times):
        document = await _queue(testbed.product, "document")
        for _ in range(2):
            await _dies(testbed, "before_document_index")
        await _restart(testbed, "before_document_index")
        status, problem = await _until(
            testbed.product, f"{DOCUMENT} {document}", "ready", "failed"
        )
        is_alive = testbed.product.web.poll() is None
        result.histories += 1
        result.violations += unless(status == "failed", f"it is {status}")
        is_true = "crashed twice" in problem and "SIGKILL" in problem
        result.violations += unless(is_true, f"the reason is {problem}")
        result.violations += unless(is_alive, "the server ended with it")
        await _restart(testbed)
    return result


@row("F48", "killed during a call of a scheduled workflow that must not be repeated", times=1)
async def f48(testbed: Testbed, times: int) -> Result:
    """Its owner is notified at once."""
    result = Result()
    for _ in range(times):
        await asyncio.to_thread(testbed.product.kill)
        schedule = await _queue(testbed.product, "schedule")
        is_dead = await _dies(testbed, "after_tool_call")
        await _restart(testbed)
        query = f"{NOTIFIED} 'schedule.{schedule}'"
        count, text = await _until(testbed.product, query, more_than=0)
        result.histories += 1
        result.violations += unless(is_dead, "it was never reached")
        result.violations += unless(count == 1, f"{count} notifications: {text}")
    return result


NOTIFIED = (
    "SELECT count(*), max(n.text) FROM alerts_notification n "
    "JOIN agents_run r ON r.id = n.run_id WHERE r.topic ="
)


@row("F49", "hostile files of one user, and another user's small file", times=1)
async def f49(testbed: Testbed, times: int) -> Result:
    """The small file doesn't wait for the others, and they end."""
    result = Result()
    for _ in range(times):
        last, small = (await _queue(testbed.product, "hostile")).split()
        status, problem = await _until(
            testbed.product, f"{DOCUMENT} {small}", "ready", "failed"
        )
        [[waiting, _]] = await asyncio.to_thread(_rows, testbed.product, f"{DOCUMENT} {last}")
        await _until(testbed.product, f"{DOCUMENT} {last}", "ready", "failed")
        result.histories += 1
        result.violations += unless(status == "ready", f"it is {status}: {problem}")
        result.violations += unless(waiting == "queued", "it waited for all hostile files")
    return result


DOCUMENT = "SELECT status, problem FROM agents_document WHERE id ="
IMPORT = "SELECT status, problem FROM chat_chatimport WHERE id ="
LEASE = "SELECT lease FROM chat_chatimport WHERE id ="
IMPORTED = "SELECT count(*), '' FROM chat_importresult WHERE chat_import_id ="


async def _queue(product: Product, kind: str) -> str:
    return await asyncio.to_thread(product.run, "-m", "tests.faults.queued_jobs", kind, order())


async def _restart(testbed: Testbed, fault: str = "") -> None:
    """Kill the product, and start it when its claims have ended."""
    await asyncio.to_thread(testbed.product.kill)
    with closing(sqlite3.connect(testbed.product.database, timeout=20)) as database, database:
        database.execute(
            "UPDATE agents_document SET lease_until = ? WHERE lease_until IS NOT NULL",
            [LONG_AGO],
        )
        database.execute(
            "UPDATE chat_chatimport SET lease_until = ? WHERE lease_until IS NOT NULL",
            [LONG_AGO],
        )
    await testbed.restart(fault)


async def _dies(testbed: Testbed, fault: str) -> bool:
    """Start the product with a fault that ends it, possibly before it has served a page."""
    with suppress(DiedEarly):
        await _restart(testbed, fault)
    return await asyncio.to_thread(testbed.product.died, ENDS)


async def _until(
    product: Product, query: str, *states: str, more_than: int | None = None
) -> tuple[str, str]:
    """Return the row once it has one of these states, or its number is larger."""
    async with asyncio.timeout(2 * ENDS):
        while True:
            [[state, problem]] = await asyncio.to_thread(_rows, product, query)
            if state in states or (more_than is not None and state > more_than):
                return state, problem
            await asyncio.sleep(0.1)


def _rows(product: Product, query: str) -> list[tuple]:
    with closing(sqlite3.connect(product.database, timeout=20)) as database:
        return database.execute(query).fetchall()
