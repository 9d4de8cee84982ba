"""F13–F21: the model, or the connection to it, misbehaves."""

import asyncio
import time

from agents.llm.wire import provider_errors
from tests.faults.rows import order, row, unless
from tests.faults.tab import Tab
from tests.faults.testbed import Result, Testbed
from tests.faults.testbed_kinds import SECRET

ENDS = 30
SCRIPTED = "openai/scripted"
CUT_OFF = provider_errors.ANSWER_CUT_OFF.fill(model=repr(SCRIPTED))
UNREADABLE = provider_errors.UNREADABLE_RESPONSE.fill(model=repr(SCRIPTED))


async def _ask_and_expect(
    testbed: Testbed, question: str, *words: str, agent: str = ""
) -> Result:
    """Ask a question, expect this text on the page at the end, and ask one more."""
    tab = await testbed.tab()
    began = time.monotonic()
    await tab.ask(question, agent)
    await tab.until_over(ENDS)
    took = time.monotonic() - began
    missing = [f"{question}: no {each!r}" for each in words if each not in tab.text]
    missing += _leaks(tab)
    await tab.ask("words:3")  # the chat continues, and the circuit stays closed
    await tab.until_over(ENDS)
    missing += unless("word2" in tab.runs[-1].text, f"{question}: no answer after it")
    result = await testbed.played(ENDS)
    result.violations += missing
    result.slowest = took
    return result


def _leaks(tab: Tab) -> list[str]:
    found = [bad for bad in ("Traceback", SECRET, "Errno") if bad in tab.text]
    return [f"{bad!r} is on the page" for bad in found]


async def _each(testbed: Testbed, times: int, *questions: tuple[str, ...]) -> Result:
    result = Result()
    for _ in range(times):
        for question, *words in questions:
            result.add(await _ask_and_expect(testbed, question, *words))
    return result


@row("F13", "the model's connection is reset in mid-sentence", times=3)
async def f13(testbed: Testbed, times: int) -> Result:
    cut = ("cut:8", "word0 word1", CUT_OFF, "Try again")
    return await _each(testbed, times, cut, ("look:x cut:1", CUT_OFF))


@row("F14", "the model hangs before its first word", times=3, kind="hasty")
async def f14(testbed: Testbed, times: int) -> Result:
    result = Result()
    for _ in range(times):
        tab = await testbed.tab()
        began = time.monotonic()
        await tab.ask("hang:0")
        await tab.until(lambda tab=tab: "The model is slow: no output for" in tab.text, 3)
        await tab.until_over(ENDS)
        took = time.monotonic() - began
        said = "sent nothing for 3 s" in tab.text
        await tab.ask("words:2")
        found = await testbed.played(ENDS)
        found.violations += unless(
            said and took < 3 + 2, f"given up after {took:.1f} s: {said}"
        )
        found.slowest = took
        result.add(found)
    return result


@row("F14b", "the model reads its prompt for longer than the limit", times=6, kind="hasty")
async def f14b(testbed: Testbed, times: int) -> Result:
    return await _each(testbed, times, ("read:8", "word2"))


@row("F15", "the model hangs between two words", times=3, kind="hasty")
async def f15(testbed: Testbed, times: int) -> Result:
    hang = ("hang:5", "word4", "sent nothing for 1.5 s", "Try again")
    return await _each(testbed, times, hang)


@row("F16", "the model drips for ever", times=2, kind="hasty")
async def f16(testbed: Testbed, times: int) -> Result:
    return await _each(
        testbed, times, ("drip:0.5", "word3", "didn't finish before its timeout")
    )


@row("F17", "garbage, floods, half a call, a call of nothing, forty calls", times=3)
async def f17(testbed: Testbed, times: int) -> Result:
    return await _each(
        testbed,
        times,
        ("garbage", "word0", UNREADABLE, "Try again"),
        ("utf8", "word0"),
        ("half words:3", "word2"),
        ("unknown words:3", "word2"),
        ("finish:whatever", "Said in full."),
        ("many:40",),
        ("big:5000000", "The model's response is longer than 2,000,000 characters"),
    )


@row("F17b", "an answer in fifty thousand pieces", times=1)
async def f17b(testbed: Testbed, times: int) -> Result:
    return await _each(testbed, times, ("flood:50000",))


@row("F18", "the stream ends well with nothing in it", times=3)
async def f18(testbed: Testbed, times: int) -> Result:
    words = ("returned an empty response", "Try again")
    return await _each(testbed, times, ("empty", *words), ("nothing", *words))


@row("F19", "429 for everything: a storm", times=50)
async def f19(testbed: Testbed, times: int) -> Result:
    """Start this many runs at once; none is tried more than three times, and all end."""
    tab = await testbed.tab()
    await tab.ask(f"first:limited:2/words:5 {order()}")
    await tab.until(lambda: "Retrying in 2 s" in tab.text and "rate limited" in tab.text)
    await tab.until_over()
    result = await testbed.played(ENDS)
    asked = [f"limited: {order()}" for _ in range(times)]
    for tab, question in zip(await testbed.tabs(times), asked, strict=True):
        await tab.say(question)
    storm = await testbed.played(120)
    most = max(testbed.model.times[f"{question}#0"] for question in asked)
    storm.violations += unless(most <= 3, f"the provider was asked {most} times")
    result.add(storm)
    await asyncio.to_thread(testbed.product.kill)  # its circuit is open now
    await testbed.restart()
    return result


@row("F20", "5xx, refused, no such host, no TLS", times=2, kind="served")
async def f20(testbed: Testbed, times: int) -> Result:
    result = await _each(
        testbed,
        times,
        ("http:500", provider_errors.PROVIDER_ERROR.fill(SCRIPTED, "", 500)[:-1], "Try again"),
        ("http:529", provider_errors.PROVIDER_ERROR.fill(SCRIPTED, "", 529)[:-1]),
    )
    agents = {
        "refused": provider_errors.UNREACHABLE_REASONS["ConnectError"],
        "unknown": provider_errors.UNREACHABLE_REASONS["gaierror"],
        "secure": provider_errors.UNREACHABLE_REASONS["SSLError"],
    }
    for agent, words in agents.items():
        tab = await testbed.tab()
        await tab.ask("words:3", agent)
        await tab.until_over(ENDS)
        missing = unless(
            provider_errors.NOT_CONNECTED.partition("%")[0] in tab.text and words in tab.text,
            words,
        )
        missing += _leaks(tab)
        found = await testbed.played(ENDS)
        found.violations += [f"{agent}: no {each!r}" for each in missing]
        result.add(found)
    return result


@row("F21", "the conversation is too long for the model", times=3)
async def f21(testbed: Testbed, times: int) -> Result:
    words = ("The chat is too long", "Start a new chat")
    return await _each(testbed, times, ("toolong", *words))
