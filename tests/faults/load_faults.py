"""F37–F41: more content than a page can display, more pages and larger requests than usual."""

import asyncio
import time
from contextlib import suppress

import aiohttp
import psutil

from agents.runs import close_codes
from agents.web.consumers.frames import MAX_FRAME_BYTES
from tests.bench import bodies
from tests.bench.rounds import percentile
from tests.faults.rows import order, row, unless
from tests.faults.tab import GONE, Tab
from tests.faults.testbed import Result, Testbed, resident_mb

ENDS = 60
SHORT, PASTES = 23, 5
PASTE = "x" * 160_000
CROWDS = (20, 100)
MAX_SOCKETS = 20
ASKED = 25
ACKNOWLEDGED = 0.3
BUSY = 3  # factor over the idle latency, if that is high
STAYS = 2.0
TALKER = "talker"
PAGES = 15
BODY_MB = 20  # of memory, for any request
LATE_MS = 100  # of others, meanwhile


def _frames(tab: Tab) -> list[str]:
    """Return what is wrong with the received frames."""
    longest = max((len(frame.encode()) for _, frame in tab.frames), default=0)
    return unless(longest <= MAX_FRAME_BYTES, f"{tab.name}: a frame of {longest:,} bytes")


async def _stays(tab: Tab) -> list[str]:
    """Check that it is connected once, and stays connected."""
    sockets = tab.sockets
    await asyncio.sleep(STAYS)
    return unless(tab.sockets == sockets, f"{tab.name}: connected {tab.sockets} times")


@row("F37", "an answer of 1,950,000 characters", times=2)
async def f37(testbed: Testbed, times: int) -> Result:
    """Both watching and later pages display the beginning and a link."""
    result = Result()
    for _ in range(times):
        tab = await testbed.tab()
        await tab.ask(f"long:1950000 {order()}", TALKER)
        await tab.until_over(ENDS)
        before = resident_mb(testbed.product.web.pid)
        new = await testbed.beside(tab)
        wrong = await _stays(new)
        whole = await _whole(testbed, tab)
        wrong += unless(whole == 1_950_000, f"the whole answer has {whole:,} characters")
        wrong += unless("of 1,950,000 characters" in new.text, "the answer has no mark")
        grown = resident_mb(testbed.product.web.pid) - before
        wrong += unless(grown < 60, f"it grew by {grown:.0f} MB")
        await new.ask("words:3")
        await new.until_over(ENDS)
        wrong += _frames(tab) + _frames(new)
        found = await testbed.played(ENDS)
        found.violations += wrong
        result.add(found)
    return result


async def _whole(testbed: Testbed, tab: Tab) -> int:
    run = tab.runs[-1].attributes["id"].removeprefix("run-")
    where = f"{tab.url}/traces/{run}/text/answer/"
    async with testbed.client.get(where, headers=tab.headers) as got:
        return len(await got.text())


@row("F38", "a page misses 28 messages, five of them of 160 kB", times=2)
async def f38(testbed: Testbed, times: int) -> Result:
    result = Result()
    for _ in range(times):
        away = await testbed.tab()
        await away.ask("words:3")
        await away.until_over(ENDS)
        here = await testbed.beside(away)
        await away.close()
        for number in range(SHORT + PASTES):
            more = PASTE if number % 6 == 5 else order()
            await here.ask(f"words:3 {more}", TALKER, ENDS)
            await here.until_over(ENDS)
        away.frames.clear()
        began = time.monotonic()
        await away.away(0)
        await away.until(lambda away=away: len(away.runs) == SHORT + PASTES + 1, ENDS)
        took = time.monotonic() - began
        wrong = await _stays(away) + _frames(away) + _frames(here)
        found = await testbed.played(ENDS)
        found.violations += wrong
        found.slowest = took
        result.add(found)
    return result


@row("F39", "20 and 100 sockets of one person with an old cursor", times=1)
async def f39(testbed: Testbed, times: int) -> Result:
    """Another user's messages are acknowledged in time: `slowest` is the 95th percentile.

    On a machine so busy that they are late without load, they may be late here too.
    """
    result = Result()
    crowded = await testbed.tab()
    for _ in range(SHORT):
        await crowded.ask("words:3")
        await crowded.until_over(ENDS)
    calm = Tab(testbed.client, crowded.url, testbed.people[-1], _other(testbed, crowded))
    await calm.open()
    for _ in range(times):
        for size in CROWDS:
            quiet, late, codes = await _crowd(testbed, crowded, calm, size)
            most = max(ACKNOWLEDGED, BUSY * quiet)
            about = f"{size} sockets: acknowledged after {late:.2f} s, else {quiet:.2f} s"
            result.violations += unless(late <= most, about)
            is_limited = size <= MAX_SOCKETS or close_codes.TOO_MANY in codes
            result.violations += unless(is_limited, "nobody was turned away")
            result.slowest = max(result.slowest, late)
    await calm.close()
    late, result.slowest = result.slowest, 0.0
    result.add(await testbed.played(ENDS))
    result.slowest = late
    return result


async def _crowd(
    testbed: Testbed, crowded: Tab, calm: Tab, size: int
) -> tuple[float, float, list[int]]:
    """Connect this many pages at once and repeatedly, while others chat."""
    before, codes = await _acknowledgement_p95(calm), []
    crowd = [asyncio.create_task(_comes_again(testbed, crowded, codes)) for _ in range(size)]
    await asyncio.sleep(0.2)
    late = await _acknowledgement_p95(calm)
    for task in crowd:
        task.cancel()
    await asyncio.wait(crowd)
    return max(before, await _acknowledgement_p95(calm)), late, codes


async def _acknowledgement_p95(tab: Tab) -> float:
    """Return the 95th percentile of the time until messages are acknowledged."""
    took = []
    for _ in range(ASKED):
        began = time.monotonic()
        await tab.ask("words:1")
        took.append(time.monotonic() - began)
        await tab.until_over(ENDS)
    return percentile(took, 0.95)


def _other(testbed: Testbed, crowded: Tab) -> int:
    """Return another user's chat."""
    person = testbed.people[-1]
    if person["cookie"] in crowded.headers["Cookie"]:
        testbed.people.insert(0, testbed.people.pop())
        person = testbed.people[-1]
    return person["chats"].pop()


async def _comes_again(testbed: Testbed, tab: Tab, codes: list[int]) -> None:
    """Reconnect repeatedly like a page that is cut off; a rejected one stays away."""
    where = f"{tab.url.replace('http', 'ws')}/ws/chat/{tab.chat}/?after=0"
    code = 0
    while code != close_codes.TOO_MANY:
        with suppress(*GONE):
            async with testbed.client.ws_connect(
                where, headers=tab.headers, max_msg_size=0
            ) as socket:
                async for message in socket:
                    is_text = message.type is aiohttp.WSMsgType.TEXT
                    if is_text and 'id="composer-state"' in message.data:
                        break
                code = socket.close_code or 0
                codes.append(code)
        await asyncio.sleep(0.25)


@row("F40", "15 pages connect at once where two can wait", times=3, kind="crowded")
async def f40(testbed: Testbed, times: int) -> Result:
    """The others are told to try again later, do so, and are served."""
    result = Result()
    for _ in range(times):
        tab = await testbed.tab()
        await tab.ask("words:3")
        await tab.until_over(ENDS)
        codes: list[int] = []
        pages = [_until_served(testbed, tab, number, codes) for number in range(PAGES)]
        await asyncio.wait_for(asyncio.gather(*pages), ENDS)
        found = await testbed.played(ENDS)
        told = f"closed with {sorted(set(codes))}"
        found.violations += unless(set(codes) == {close_codes.TRY_AGAIN_LATER}, told)
        found.violations += unless("Traceback" not in testbed.product.output, "a traceback")
        result.add(found)
    return result


async def _until_served(testbed: Testbed, tab: Tab, number: int, codes: list[int]) -> None:
    """Connect until the page is up to date; no two have the same frames to share."""
    where = f"{tab.url.replace('http', 'ws')}/ws/chat/{tab.chat}/?after=0&shown={number}"
    while True:
        async with testbed.client.ws_connect(where, headers=tab.headers) as socket:
            async for message in socket:
                is_text = message.type is aiohttp.WSMsgType.TEXT
                if is_text and 'id="composer-state"' in message.data:
                    return
            codes.append(socket.close_code or 0)
        await asyncio.sleep(0.25)


@row("F41", "2 and 150 MB to the sign-in page, and a file of 47 MB", times=1)
async def f41(testbed: Testbed, times: int) -> Result:
    """Anonymous ones are refused, the file arrives, and neither costs memory or delays others.

    On a machine so busy that others are late without load, they may be late here too.
    """
    result = Result()
    for _ in range(times):
        tab = await testbed.tab()
        cookie = tab.headers["Cookie"].partition(";")[0]
        await asyncio.to_thread(bodies.warm_up, testbed.product.port, cookie)
        await tab.ask("words:300@0.02")
        wrong = await asyncio.to_thread(_body, testbed, "/login/", 2, b"\n", "")
        wrong += await asyncio.to_thread(_body, testbed, "/login/", 150, b"x", "")
        wrong += await asyncio.to_thread(_body, testbed, "/chat/files/", 47, b"words\n", cookie)
        await tab.until_over(ENDS)
        found = await testbed.played(ENDS)
        found.violations += wrong
        result.add(found)
    return result


def _body(testbed: Testbed, path: str, megabytes: int, filler: bytes, cookie: str) -> list[str]:
    """Send a body; return what is wrong with the answer, the memory and the delay."""
    web, port = psutil.Process(testbed.product.web.pid), testbed.product.port
    with bodies.watch(web, port) as load:
        status = bodies.post(port, path, megabytes * bodies.MEGABYTE, filler, cookie)
    grown, late = load.figures.values()
    what = f"{megabytes} MB to {path}"
    wrong = unless(status == (201 if cookie else 413), f"{what}: answered with {status}")
    wrong += unless(grown <= BODY_MB, f"{what}: {grown} MB more")
    return wrong + unless(late <= LATE_MS + BUSY * load.usual_ms, f"{what}: {late} ms late")
