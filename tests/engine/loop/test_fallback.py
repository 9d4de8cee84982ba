import asyncio

import pytest

from agents.engine import FallbackStrategy, ModelError, ProviderFailed, ToolResult
from agents.engine.tool import uncertain_message
from tests.engine.conftest import Echo


def failing_tool(times, error="busy"):
    """Return a tool that works after failing this often."""
    tool = Echo()

    async def does(_):
        if len(tool.inputs) <= times:
            raise RuntimeError(error)
        return ToolResult("at last")

    tool.does = does
    return tool


@pytest.fixture
def fallback():
    return FallbackStrategy(pause=0)


async def test_a_tool_that_works_is_called_once(fallback):
    result = await fallback.execute_with_fallback(Echo(), {"text": "hi"})

    assert (result.output, result.degraded, result.attempts) == ("hi", False, 1)


async def test_a_tool_that_succeeds_on_the_third_attempt_is_not_degraded(fallback):
    result = await fallback.execute_with_fallback(failing_tool(2), {})

    assert (result.output, result.degraded, result.attempts) == ("at last", False, 3)


async def test_a_tool_that_always_fails_degrades_the_run(fallback):
    result = await fallback.execute_with_fallback(failing_tool(9), {})

    assert (result.degraded, result.attempts) == (True, 3)
    assert "busy" in result.error


@pytest.mark.parametrize("retries", [0, 4])
async def test_a_tool_can_have_its_own_number_of_retries(fallback, retries):
    tool = failing_tool(9)
    tool.max_retries = retries

    assert (await fallback.execute_with_fallback(tool, {})).attempts == retries + 1


async def test_an_error_result_is_retried_like_an_exception(fallback):
    async def does(_):
        return ToolResult(error="busy")

    tool = Echo(does=does)
    result = await fallback.execute_with_fallback(tool, {})

    assert (result.degraded, len(tool.inputs)) == (True, 3)


async def test_an_at_most_once_tool_is_never_retried(fallback):
    tool = failing_tool(9)
    tool.effect = "at_most_once"

    result = await fallback.execute_with_fallback(tool, {})

    assert (result.degraded, len(tool.inputs)) == (True, 1)


async def test_cancellation_is_not_a_failure(fallback):
    entered = asyncio.Event()

    async def hang(_):
        entered.set()
        await asyncio.Event().wait()

    tool = Echo(does=hang)
    task = asyncio.create_task(fallback.execute_with_fallback(tool, {}))
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(tool.inputs) == 1


async def test_a_plain_string_is_a_tool_result(fallback):
    async def does(_):
        return "fine"

    assert (await fallback.execute_with_fallback(Echo(does=does), {})).output == "fine"


async def test_any_other_return_type_is_an_error(fallback):
    async def does(_):
        return 42

    result = await fallback.execute_with_fallback(Echo(does=does), {})

    assert result.degraded
    assert "returned int instead of a ToolResult" in result.error


async def test_a_hung_at_most_once_tool_has_an_uncertain_result(fallback):
    async def hang(_):
        await asyncio.Event().wait()

    tool = Echo(does=hang)
    tool.timeout, tool.effect = 0.05, "at_most_once"
    result = await fallback.execute_with_fallback(tool, {})

    assert result.is_outage
    assert result.error.endswith(uncertain_message(""))


@pytest.mark.parametrize(
    ("error", "is_outage"),
    [
        (ConnectionError("refused"), True),
        (RuntimeError("the pump is broken"), True),
        (ProviderFailed(), True),
        (ValueError("no date"), False),
        (KeyError("text"), False),
        (ModelError("Wrong key."), False),
    ],
)
async def test_input_errors_are_distinguished_from_outages(fallback, error, is_outage):
    async def fail(_):
        raise error

    result = await fallback.execute_with_fallback(Echo(does=fail), {})

    assert (result.degraded, result.is_outage) == (True, is_outage)


@pytest.mark.parametrize("mendable", [True, False])
async def test_tool_errors_contain_no_keys(fallback, mendable):
    async def refuse(_):
        return ToolResult(error="GET /?key=abc123 failed for Bearer x.y", mendable=mendable)

    async def fail(_):
        raise RuntimeError("postgresql://shop:hunter2@db/shop refused")

    refused = await fallback.execute_with_fallback(Echo(does=refuse), {})
    failed = await fallback.execute_with_fallback(Echo(does=fail), {})

    assert refused.error == "GET /?key=*** failed for Bearer ***"
    assert failed.error == "echo failed: RuntimeError: postgresql://***@db/shop refused"


async def test_a_very_long_error_is_truncated(fallback):
    async def fail(_):
        raise RuntimeError("no " * 1_000_000)

    result = await fallback.execute_with_fallback(Echo(does=fail), {})

    assert len(result.error) < 21_000
    assert result.error.endswith("…")
