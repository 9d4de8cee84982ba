"""F07, F30, F32, F33: the storage is locked, full, outdated, or copied."""

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.faults.history import History, violations
from tests.faults.product import Product
from tests.faults.rows import order, row, story, unless
from tests.faults.testbed import NotAvailable, Result, Testbed

ENDS = 30
SMALL = "size=24m"
FULL = "Storage is full"
OLDER = ("agents", "0001_tables")


@row("F07", "the database is locked by another process", times=2)
async def f07(testbed: Testbed, times: int, seconds: float = 15) -> Result:
    """Everything waits, then works, without an error."""
    result = Result()
    for _ in range(times):
        tabs = await testbed.tabs(5)
        await tabs[0].ask("words:30@0.02")
        with _lock_database(testbed.product.database):
            for number, tab in enumerate(tabs[1:]):
                await tab.say(story(number))
            await asyncio.sleep(seconds)
        found = await testbed.played(ENDS)
        shown = " ".join(tab.text for tab in tabs)
        bad = [words for words in ("locked", "went wrong", "failed") if words in shown]
        found.violations += unless(not bad, f"{bad} on the page")
        result.add(found)
    return result


@contextmanager
def _lock_database(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


@row("F30", "the disk is full: before a message, and in the middle of runs", times=2)
async def f30(testbed: Testbed, times: int) -> Result:
    """The page reports it, reading works, and everything continues once there is space."""
    result = Result()
    with _small_disk(testbed.folder / "small") as folder, Testbed(folder, chats=10) as small:
        async with small:
            for _ in range(times):
                result.add(await _full_before(small))
                result.add(await _full_during(small))
    return result


async def _full_before(testbed: Testbed) -> Result:
    tab = await testbed.tab()
    with _fill_disk(testbed.product):
        said = await tab.say("words:5 " + "x" * 50_000)
        await tab.until(lambda: FULL in tab.text, 20)
        readable = (await tab.loaded()).find("messages")
        was_taken = said.is_acknowledged
    await tab.send_again()
    result = await testbed.played(ENDS)
    result.violations += unless(readable and not was_taken, "taken, and not kept")
    return result


async def _full_during(testbed: Testbed) -> Result:
    tabs = await testbed.tabs(4)
    for tab in tabs:
        await tab.ask(f"look:{order()} words:200@0.02")
    await asyncio.gather(*(tab.until(lambda tab=tab: "word5" in tab.text) for tab in tabs))
    with _fill_disk(testbed.product):
        await asyncio.sleep(3)
    return await testbed.played(ENDS)


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        raise NotAvailable("a disk that can be filled needs the right to mount one")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def _fill_disk(product: Product) -> Iterator[None]:
    """Fill the disk, and the database's own free space."""
    with closing(sqlite3.connect(product.database, timeout=20)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ballast = product.folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    try:
        yield
    finally:
        ballast.unlink()


@row("F32", "an older version, stopped in the middle of runs, is upgraded", times=2)
async def f32(testbed: Testbed, times: int) -> Result:
    """The rows are as that version left them, and the upgrade is killed midway."""
    result = Result()
    for _ in range(times):
        tabs = await testbed.tabs(4)
        for number, tab in enumerate(tabs):
            await tab.say(story(number))
        await asyncio.sleep(0.8)
        await asyncio.to_thread(testbed.product.kill)
        await asyncio.to_thread(testbed.product.run, "manage.py", "migrate", *OLDER)
        is_killed = await asyncio.to_thread(_is_killed_half_way, testbed.product)
        await testbed.restart()
        found = await testbed.played(ENDS)
        found.violations += unless(is_killed, "the migration was not killed")
        result.add(found)
    return result


def _is_killed_half_way(product: Product) -> bool:
    try:
        product.run("-m", "tests.faults.upgrade")
    except RuntimeError:
        return True
    return False


@row("F33", "a copy is taken under load, and a server started on it", times=2)
async def f33(testbed: Testbed, times: int) -> Result:
    """The copy is complete, and its runs end."""
    result = Result()
    for number in range(times):
        tabs = await testbed.tabs(8)
        for at, tab in enumerate(tabs):
            await tab.say(story(at))
        await asyncio.sleep(1)
        taken = [sent for tab in tabs for sent in tab.sent if sent.is_acknowledged]
        copy = testbed.folder / f"copy-{number}"
        await asyncio.to_thread(_back_up, testbed.product, copy)
        result.add(await testbed.played(ENDS))
        found = await asyncio.to_thread(_restore, copy, testbed.wire.url)
        wrong = violations(History(sent=taken, **found))
        result.add(Result(len(taken), wrong))
    return result


def _back_up(product: Product, folder: Path) -> None:
    """Copy as the handbook says: the files, and the database with its own tool."""
    data = folder / "data"
    others = shutil.ignore_patterns("*.sqlite3*")
    shutil.copytree(product.folder / "data", data, ignore=others)
    for name in ("ashiato.sqlite3", "sample.sqlite3"):
        with (
            closing(sqlite3.connect(product.folder / "data" / name)) as source,
            closing(sqlite3.connect(data / name)) as target,
        ):
            source.backup(target)


def _restore(folder: Path, model_url: str) -> dict:
    """Return what a server has saved of the copy, after resuming all its runs."""
    product = Product(folder, model_url)
    product.start()
    try:
        kept = product.settled(ENDS)
    finally:
        product.end()
    waits = frozenset(run["pk"] for run in kept["runs"] if run["status"] == "waiting")
    return kept | {"waits": waits}
