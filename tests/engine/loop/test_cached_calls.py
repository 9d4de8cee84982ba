"""Tool results from a cache: when a tool is called, and what is shared or evicted."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from agents.engine import (
    FallbackStrategy,
    GuardrailAction,
    Guardrails,
    ToolRegistry,
    ToolResult,
)
from agents.engine.call_context import CallContext
from agents.engine.guardrails.checks import Pattern
from agents.engine.loop.capability import Hooks
from agents.engine.loop.tool_calls.cached_calls import ResultCache
from agents.engine.loop.tool_calls.tool_runner import ToolRunner
from agents.engine.result_cache import CachedResult, CacheMark, digest
from agents.engine.turn.assembly import ToolCall
from tests.engine.conftest import Echo


class MemoryCache:
    """A cache without rights and limits."""

    def __init__(self, is_read=True):
        self.is_read, self.saved, self.evicted = is_read, {}, 0

    async def key(self, input):
        return digest(input)

    async def find(self, key):
        return self.saved.get(key)

    async def save(self, key, input, result, seconds):
        mark = CacheMark(at=datetime(2026, 1, 1, tzinfo=UTC), key=key, seconds=seconds)
        self.saved[key] = CachedResult(result=result, mark=mark)

    async def evict(self):
        self.evicted += 1
        self.saved.clear()


class Slow(Echo):
    """Counts its calls, which wait until they are released."""

    def __init__(self, does=None):
        super().__init__("search", does or self._wait)
        self.effect, self.calls, self.released = "read", 0, asyncio.Event()
        self.store = MemoryCache()

    async def _wait(self, _):
        self.calls += 1
        await self.released.wait()
        return ToolResult(f"result {self.calls}")


def runner(tool, **options):
    hooks = Hooks([ResultCache({tool.name: tool.store})])
    fallback = FallbackStrategy(max_retries=0, pause=0)
    return ToolRunner(ToolRegistry([tool]), fallback, hooks=hooks, **options)


def call(text="tea"):
    return ToolCall(id="c1", name="search", arguments=json.dumps({"text": text}))


@pytest.fixture
def slow():
    return Slow()


async def test_an_equal_call_gets_the_saved_result_and_says_since_when(slow):
    slow.released.set()

    first, second = await runner(slow).use(call()), await runner(slow).use(call())

    assert (first.output, second.output, slow.calls) == ("result 1", "result 1", 1)
    assert first.cached is None
    assert second.cached.to_dict()["at"] == "2026-01-01T00:00:00+00:00"


async def test_equal_calls_in_flight_are_joined(slow):
    calls = [asyncio.create_task(runner(slow).use(call())) for _ in range(5)]
    await asyncio.sleep(0.01)
    slow.released.set()

    outcomes = await asyncio.gather(*calls)

    assert slow.calls == 1
    assert [bool(outcome.cached) for outcome in outcomes] == [False, True, True, True, True]


async def test_a_cancelled_call_does_not_cancel_those_that_wait_for_it(slow):
    leader, follower = (asyncio.create_task(runner(slow).use(call())) for _ in range(2))
    await asyncio.sleep(0.01)
    leader.cancel()
    await asyncio.wait([leader])
    slow.released.set()

    assert (await follower).output == "result 2"


async def test_an_error_is_not_saved():
    async def fail(_):
        return ToolResult(error="no such page", mendable=True)

    tool = Slow(fail)
    await runner(tool).use(call())

    assert not tool.store.saved


async def test_a_result_in_which_a_person_was_asked_is_not_shared(slow):
    class Asking(CallContext):
        is_personal = True

    slow.released.set()
    await runner(slow).use(call(), Asking())

    assert not slow.store.saved


async def test_guardrails_check_a_saved_result_again(slow):
    slow.released.set()
    await runner(slow).use(call())
    rule = Pattern(pattern="result", name="w", stage="tool_output", action=GuardrailAction.MASK)

    outcome = await runner(slow, guardrails=Guardrails(blocked_patterns=[rule])).use(call())

    assert outcome.cached
    assert "result" not in outcome.output


async def test_a_call_that_changes_something_evicts_also_when_it_fails():
    async def fail(_):
        raise ConnectionError("cut")

    tool = Slow(fail)
    tool.effect, tool.store = "at_most_once", MemoryCache(is_read=False)
    tool.store.saved["x"] = "old"

    outcome = await runner(tool).use(call())

    assert outcome.result.is_error
    assert (tool.store.saved, tool.store.evicted) == ({}, 2)


async def test_a_failed_call_fails_for_no_other_run():
    async def fail_once(_):
        tool.calls += 1
        number = tool.calls
        await tool.released.wait()
        return ToolResult(error="Limit reached.", mendable=True) if number == 1 else "rain"

    tool = Slow(fail_once)
    calls = [asyncio.create_task(runner(tool).use(call())) for _ in range(3)]
    await asyncio.sleep(0.01)
    tool.released.set()

    outcomes = await asyncio.gather(*calls)

    assert [outcome.result.is_error for outcome in outcomes] == [True, False, False]


async def test_a_result_for_one_person_is_not_given_to_an_equal_call_in_flight(slow):
    async def private(_):
        slow.calls += 1
        await slow.released.wait()
        return ToolResult(f"result {slow.calls}", is_private=True)

    slow.does = private
    calls = [asyncio.create_task(runner(slow).use(call())) for _ in range(2)]
    await asyncio.sleep(0.01)
    slow.released.set()
    outcomes = await asyncio.gather(*calls)

    assert slow.calls == 2
    assert [outcome.cached for outcome in outcomes] == [None, None]
