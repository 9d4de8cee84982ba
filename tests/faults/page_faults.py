"""F09, F22–F28, F34: users' actions and lost connections."""

import asyncio
import random
import time

from tests.faults.rows import order, row, unless
from tests.faults.tab import Tab
from tests.faults.testbed import Result, Testbed, resident_mb

ENDS = 30
MB_A_SOCKET = 8


@row("F09", "the layer loses three notices of ten", times=20, kind="lossy")
async def f09(testbed: Testbed, times: int) -> Result:
    """Lost notifications go unnoticed: the rows are read again, and all pages agree."""
    for number, tab in enumerate(await testbed.tabs(times)):
        await tab.say(f"look:{order()} words:{20 + number}@0.03 ")
    return await testbed.played(ENDS)


@row("F22", "Stop: in a stream, a tool, a server, a question, a pause", times=2, kind="served")
async def f22(testbed: Testbed, times: int) -> Result:
    """Stopped within two seconds, and nothing follows."""
    result = Result()
    moments = {
        "words:400@0.05": "word3",
        "wait:30": "wait: 30",
        "plain__never": "plain__never",
        f"sign:{order()}": "Run “Sign”?",
        "limited:20": "Retrying in",
    }
    for _ in range(times):
        for question, words in moments.items():
            tab = await testbed.tab()
            await tab.ask(f"{question} {order()}")
            await tab.until(lambda tab=tab, words=words: words in tab.text)
            result.add(await _stop_run(testbed, tab, question))
        gone = testbed.wire.disconnects
        result.violations += unless(gone, "the model was never hung up on")
    return result


async def _stop_run(testbed: Testbed, tab: Tab, question: str) -> Result:
    began = time.monotonic()
    await tab.stop()
    await tab.until_over(10)
    took = time.monotonic() - began
    shown = tab.runs[-1].text
    await asyncio.sleep(0.5)
    result = await testbed.played(5)
    result.slowest = took
    result.violations += unless(took < 2, f"{question}: stopped after {took:.1f} s")
    status = tab.runs[-1].attributes["data-status"]
    result.violations += unless(status == "stopped", f"{question}: {status} {shown[-200:]}")
    result.violations += unless(tab.runs[-1].text == shown, f"{question}: words after the end")
    return result


@row("F23", "Stop and the end, in the same moment", times=100)
async def f23(testbed: Testbed, times: int) -> Result:
    result = Result()
    for _ in range(0, times, 20):
        tabs = await testbed.tabs(min(20, times))
        await asyncio.gather(*(_race(tab) for tab in tabs))
        result.add(await testbed.played(ENDS))
    return result


async def _race(tab: Tab) -> None:
    await tab.ask("words:3@0.02")
    await tab.until(lambda: tab.is_live or tab.runs)
    await asyncio.sleep(random.uniform(0, 0.15))
    await tab.stop()


@row("F24", "a page is cut off in mid-stream and comes back", times=10)
async def f24(testbed: Testbed, times: int) -> Result:
    """Before the end, after it, and with another question asked meanwhile."""
    tabs = await testbed.tabs(times)
    for number, tab in enumerate(tabs):
        await tab.ask(f"look:{order()} words:40@0.03")
        tab.gap = (0.3, 1, 3)[number % 3]
    await asyncio.sleep(0.5)
    others = [await testbed.beside(tab) for tab in tabs[::3]]
    await asyncio.gather(*(tab.away(tab.gap) for tab in tabs))
    await asyncio.gather(*(tab.until_over(ENDS) for tab in [*tabs, *others]))
    for other in others:
        await other.ask("words:5")
    return await testbed.played(ENDS)


@row("F25", "two tabs: asked in one, approved in the other, stopped in the first", times=5)
async def f25(testbed: Testbed, times: int) -> Result:
    result = Result()
    for _ in range(times):
        one = await testbed.tab()
        other = await testbed.beside(one)
        await one.ask(f"sign:{order()} words:300@0.05")
        await other.until(lambda other=other: other.questions)
        status = await other.decide(other.questions[0], is_approved=True)
        await one.until(lambda one=one: "word3" in one.text)
        await one.stop()
        await other.until_over()
        found = await testbed.played(ENDS)
        found.violations += unless(status == 204, f"the decision was answered with {status}")
        result.add(found)
    return result


@row("F26", "a page that never reads, beside others that do", times=3)
async def f26(testbed: Testbed, times: int) -> Result:
    """The run and the other tab aren't affected, and the server buffers little."""
    result = Result()
    for _ in range(times):
        tab = await testbed.tab()
        before = resident_mb(testbed.product.web.pid)
        where = f"{tab.url.replace('http', 'ws')}/ws/chat/{tab.chat}/"
        deaf = [
            await testbed.client.ws_connect(where, headers=tab.headers, max_msg_size=0)
            for _ in range(4)
        ]
        for socket in deaf:
            socket._conn.transport.pause_reading()
        await tab.ask("words:600@0.005")
        await tab.until_over(60)
        grown = resident_mb(testbed.product.web.pid) - before
        for socket in deaf:
            socket._conn.transport.abort()
        found = await testbed.played(ENDS)
        most = MB_A_SOCKET * (len(deaf) + 1) + 20
        found.violations += unless(grown < most, f"it grew by {grown:.0f} MB")
        result.add(found)
    return result


@row("F27", "the same message three times: a double click, a lost answer", times=10)
async def f27(testbed: Testbed, times: int) -> Result:
    """From the same tab, another one, and over HTTP: one message and one run."""
    for tab in await testbed.tabs(times):
        other = await testbed.beside(tab)
        said = await tab.say("words:5@0.02")
        await tab.send_message(said)
        await other.send_message(said)
        await _post_message(testbed, tab, said.client_id, said.text)
    return await testbed.played(ENDS)


async def _post_message(testbed: Testbed, tab: Tab, client_id: str, text: str) -> None:
    form = {"text": text, "client_id": client_id}
    where = f"{tab.url}/chat/{tab.chat}/messages/"
    options = {"data": form, "headers": tab.headers, "allow_redirects": False}
    async with testbed.client.post(where, **options) as answer:
        answer.raise_for_status()


@row("F28", "messages while a run is going on", times=10)
async def f28(testbed: Testbed, times: int) -> Result:
    """They are queued, and answered one after the other."""
    for tab in await testbed.tabs(times):
        for question in ("words:60@0.02", "words:3", "words:4"):
            await tab.ask(question)
    return await testbed.played(ENDS)


@row("F34", "an approval is left for a day, and its person is switched off", times=3)
async def f34(testbed: Testbed, times: int) -> Result:
    """It waits across a restart and a day; a user who lost access can't decide."""
    result = Result()
    for _ in range(times):
        tab = await testbed.tab()
        await tab.ask(f"sign:{order()} words:3")
        await tab.until(lambda tab=tab: tab.questions)
        await asyncio.to_thread(testbed.product.kill)
        person = await asyncio.to_thread(_days_later, testbed)
        await testbed.restart()
        refused = await tab.decide(tab.questions[0], is_approved=True)
        await asyncio.to_thread(_let_in, testbed, person)
        taken = await tab.decide(tab.questions[0], is_approved=True)
        found = await testbed.played(ENDS)
        found.violations += unless(refused in {302, 403, 404}, f"refused with {refused}")
        found.violations += unless(taken == 204, f"taken with {taken}")
        result.add(found)
    return result


def _days_later(testbed: Testbed) -> str:
    """Make everything saved a day older, and deactivate the user who was asked."""
    return testbed.product.run("-m", "tests.faults.a_day_later")


def _let_in(testbed: Testbed, person: str) -> None:
    testbed.product.run("-m", "tests.faults.a_day_later", person.strip())
