import asyncio
import json

import pytest

from agents.engine import (
    FallbackStrategy,
    GuardrailAction,
    Guardrails,
    ToolRegistry,
    ToolResult,
    function_tool,
)
from agents.engine.guardrails.checks import Pattern
from agents.engine.loop.tool_calls.tool_runner import ToolRunner
from agents.engine.resilience.circuit_breaker import CircuitPolicy, Circuits
from agents.engine.turn.assembly import ToolCall
from tests.engine.conftest import Echo


async def break_down(_):
    raise ConnectionError("the wire is cut")


async def mistake(_):
    raise KeyError("text")


def broken_tool(name="search", does=break_down, stand_in="archive", effect="read"):
    tool = Echo(name, does)
    tool.fallback_tool, tool.effect = stand_in, effect
    return tool


def archive(effect="read", **attributes):
    tool = Echo("archive")
    tool.effect = effect
    tool.parameters = {**Echo.parameters, "required": ["text"]}
    vars(tool).update(attributes)
    return tool


def toolbox(*tools, circuits=None, **options):
    fallback = FallbackStrategy(pause=0, circuits=circuits)
    return ToolRunner(ToolRegistry(tools), fallback, **options)


def call(name="search", **arguments):
    return ToolCall(id="c1", name=name, arguments=json.dumps(arguments or {"text": "tea"}))


def circuits(failures):
    return Circuits(CircuitPolicy(failures=failures))


async def test_a_failed_tool_is_replaced_by_its_fallback():
    tools = toolbox(broken_tool(), archive())

    outcome = await tools.use(call())

    assert outcome.output == "search is failing, so this result is from archive: tea"
    assert (outcome.stand_in, outcome.degraded, tools.is_degraded) == ("archive", False, False)
    assert "the wire is cut" in outcome.reason


async def test_the_reason_for_a_fallback_passes_the_guardrails():
    rule = Pattern(pattern="wire", name="w", stage="tool_output", action=GuardrailAction.MASK)
    tools = toolbox(broken_tool(), archive(), guardrails=Guardrails(blocked_patterns=[rule]))

    outcome = await tools.use(call())

    assert "the ‹w› is cut" in outcome.reason


async def test_a_replaced_tool_is_neither_offered_nor_retried():
    search = broken_tool()
    tools = toolbox(search, archive())
    await tools.use(call())

    again = await tools.use(call(text="coffee"))

    assert again.output.endswith("this result is from archive: coffee")
    assert len(search.inputs) == 3
    assert [tool.name for tool in tools.available_tools()] == ["archive"]


async def test_when_the_fallback_fails_too_the_run_is_degraded_with_both_errors():
    tools = toolbox(broken_tool(), archive(does=break_down))

    outcome = await tools.use(call())

    assert (outcome.degraded, outcome.stand_in) == (True, "archive")
    assert outcome.error.startswith(
        "search is failing, so archive was called instead: archive f"
    )
    assert tools.unavailable == {"search", "archive"}


async def test_an_input_error_of_a_fallback_is_sent_to_the_model():
    async def refuse(_):
        return ToolResult(error="write a date", mendable=True)

    outcome = await toolbox(broken_tool(), archive(does=refuse)).use(call())

    assert outcome.error == "search is failing, so archive was called instead: write a date"
    assert outcome.result.mendable
    assert not outcome.degraded


@pytest.mark.parametrize(
    "arguments", [{"query": "tea"}, {"text": 7}, {"text": "tea", "city": "Kyoto"}]
)
async def test_a_fallback_with_other_parameters_is_not_called(arguments):
    other = archive()

    outcome = await toolbox(broken_tool(), other).use(call(**arguments))

    assert (outcome.degraded, outcome.stand_in, other.inputs) == (True, None, [])


@pytest.mark.parametrize(
    ("effect", "stand_in"),
    [("at_most_once", "read"), ("idempotent", "at_most_once"), ("read", "idempotent")],
)
async def test_a_fallback_with_stronger_side_effects_is_not_called(effect, stand_in):
    other = archive(effect=stand_in)

    outcome = await toolbox(broken_tool(effect=effect), other).use(call())

    assert (outcome.degraded, other.inputs) == (True, [])


async def test_a_fallback_does_not_bypass_approval():
    asks, free = archive(needs_approval=True), archive()

    first = await toolbox(broken_tool(), asks).use(call())
    second = await toolbox(broken_tool(), free, auto_execute=False).use(call())

    assert first.degraded
    assert second.degraded
    assert asks.inputs == free.inputs == []


@pytest.mark.parametrize("stand_in", ["", "nobody", "search"])
async def test_a_missing_fallback_is_ignored(stand_in):
    outcome = await toolbox(broken_tool(stand_in=stand_in)).use(call())

    assert (outcome.degraded, outcome.stand_in) == (True, None)


async def test_invalid_json_arguments_are_not_sent_to_a_fallback():
    tools = toolbox(broken_tool(), archive())
    await tools.use(call())

    outcome = await tools.use(ToolCall(id="c2", name="search", arguments='{"text": '))

    assert (outcome.stand_in, outcome.result.is_error) == (None, True)


async def test_a_successful_parallel_call_is_not_repeated_after_a_failure():
    fails = iter([False, True])

    async def does(input):
        if next(fails):
            raise ConnectionError("the wire is cut")
        await asyncio.sleep(0.01)
        return ToolResult(input["text"])

    other = archive()
    tools = toolbox(broken_tool(does=does), other)
    tools.fallback = FallbackStrategy(max_retries=0)

    well, badly = await asyncio.gather(tools.use(call(text="a")), tools.use(call(text="b")))

    assert (well.output, well.stand_in) == ("a", None)
    assert (badly.stand_in, other.inputs) == ("archive", [{"text": "b"}])


async def test_a_tool_with_an_open_circuit_is_not_called():
    shared, search = circuits(2), broken_tool(stand_in="")
    for _ in range(2):
        await toolbox(search, circuits=shared).use(call())
    tools = toolbox(search, circuits=shared)

    outcome = await tools.use(call())

    assert len(search.inputs) == 6
    assert (outcome.degraded, outcome.attempts, tools.is_degraded) == (True, 0, True)
    assert outcome.error.startswith("search has failed 2 times in a row. Next retry in")
    assert "Answer without it" in outcome.error


async def test_an_open_circuit_uses_the_fallback():
    shared = circuits(1)
    await toolbox(broken_tool(stand_in=""), circuits=shared).use(call())

    outcome = await toolbox(broken_tool(), archive(), circuits=shared).use(call())

    assert outcome.output.endswith("this result is from archive: tea")
    assert outcome.reason.startswith("search has failed 1 times in a row")


@pytest.mark.parametrize(
    ("does", "state"),
    [(break_down, "open"), (mistake, "closed"), (None, "closed")],
)
async def test_outages_open_a_circuit_and_input_errors_do_not(does, state):
    shared = circuits(1)

    await toolbox(broken_tool(does=does), circuits=shared).use(call())

    assert [(s.key, s.state) for s in shared.state()] == [("tool:search", state)]


async def test_an_input_error_does_not_reset_the_failure_count():
    shared = circuits(2)
    for does in (break_down, mistake, break_down):
        await toolbox(broken_tool(does=does, stand_in=""), circuits=shared).use(call())

    assert shared.state()[0].state == "open"


async def test_a_rejected_input_does_not_open_a_circuit():
    @function_tool
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    shared = circuits(1)
    outcome = await toolbox(double, circuits=shared).use(call("double", number="many"))

    assert outcome.result.mendable
    assert shared.state()[0].failures == 0


async def test_a_cancelled_call_does_not_open_a_circuit():
    entered = asyncio.Event()

    async def hang(_):
        entered.set()
        await asyncio.Event().wait()

    shared = circuits(1)
    using = asyncio.create_task(toolbox(Echo(does=hang), circuits=shared).use(call("echo")))
    await entered.wait()
    using.cancel()

    with pytest.raises(asyncio.CancelledError):
        await using
    assert shared.state()[0].state == "closed"
