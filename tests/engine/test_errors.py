"""Errors have a type: in events, in the result, and when raised."""

import pytest

from agents.engine import (
    AgentConnectionError,
    BudgetExceeded,
    BudgetPolicy,
    DuplicateToolCall,
    FallbackStrategy,
    GuardrailBlocked,
    Guardrails,
    LimitReached,
    MaxStepsExceeded,
    StandardTerminationPolicy,
    ToolCallLimitReached,
    ToolExecutionFailed,
    ToolResult,
    errors,
)
from agents.engine.events import EventType
from agents.engine.loop.termination import DuplicateDetectionPolicy, ToolCallLimitPolicy
from agents.engine.testing import Says
from tests.engine.conftest import Echo

CALL = Says.call("echo", text="a")
STANDARD = StandardTerminationPolicy()


async def _refuse_connection(input):
    raise ConnectionError("refused")


LIMITS = {
    MaxStepsExceeded: {"max_steps": 1},
    DuplicateToolCall: {"policy": DuplicateDetectionPolicy(STANDARD, 1)},
    ToolCallLimitReached: {"policy": ToolCallLimitPolicy(STANDARD, 1)},
    BudgetExceeded: {"policy": BudgetPolicy(STANDARD, max_tokens=1)},
}


@pytest.mark.parametrize(("kind", "options"), LIMITS.items())
async def test_each_limit_has_its_own_error_type(agent, kind, options):
    script = [CALL] if kind in (MaxStepsExceeded, BudgetExceeded) else [CALL, CALL]
    runtime = agent(*script, tools=[Echo()], **options)

    events = [event async for event in runtime.stream("Go.")]

    error, last = events[-2:]
    assert (error.type, error.data["type"]) == (EventType.ERROR, kind.__name__)
    assert error.data["stopped_reason"] == last.data["stopped_reason"] != "error"
    assert error.data["message"] == last.data["detail"]
    assert last.data["answer"] == ""


async def test_the_result_has_the_error_and_can_raise_it(agent):
    result = await agent(CALL, tools=[Echo()], max_steps=1).run("Go.")

    assert result.stopped_reason == "max_steps_reached"
    assert result.detail == "No answer after 1 step."
    with pytest.raises(LimitReached, match="No answer after 1 step") as raised:
        result.raise_for_status()
    assert type(raised.value) is MaxStepsExceeded

    with pytest.raises(MaxStepsExceeded):
        await agent(CALL, tools=[Echo()], max_steps=1).run("Go.", raise_on_failure=True)


async def test_raise_for_status_returns_a_successful_result(agent):
    result = await agent(Says(answer="Hello.")).run("Go.", raise_on_failure=True)

    assert (result.answer, result.error, result.detail) == ("Hello.", None, "")
    assert result.raise_for_status() is result


async def test_raise_for_status_raises_for_a_degraded_answer(agent):
    runtime = agent(CALL, Says(answer="Without it."), tools=[Echo(does=_refuse_connection)])

    result = await runtime.run("Go.")

    assert result.answer == "Without it."
    with pytest.raises(ToolExecutionFailed, match="echo failed: ConnectionError: refused"):
        result.raise_for_status()


async def test_model_and_guardrail_errors_keep_their_type(agent):
    failing = agent(AgentConnectionError("Nobody there."))
    with pytest.raises(AgentConnectionError, match="Nobody there"):
        await failing.run("Go.", raise_on_failure=True)

    blocking = agent(guardrails=Guardrails(blocked_patterns=["secret"]))
    with pytest.raises(GuardrailBlocked):
        await blocking.run("A secret.", raise_on_failure=True)


async def test_tool_failures_have_an_error_type_in_their_events(agent):
    script = [CALL, Says.call("nothing"), Says(answer="Without.")]
    events = [
        e async for e in agent(*script, tools=[Echo(does=_refuse_connection)]).stream("Go.")
    ]

    told = [e.data.get("error_type") for e in events if e.type is EventType.TOOL_RESPONSE]
    assert told == ["ToolExecutionFailed", "ToolNotFoundError"]


async def test_raise_for_status_raises_the_error_of_a_failed_tool():
    outcome = await FallbackStrategy(pause=0).execute_with_fallback(
        Echo(does=_refuse_connection), {}
    )

    with pytest.raises(ToolExecutionFailed, match="refused"):
        outcome.raise_for_status()


async def test_the_step_of_a_fallback_tool_has_its_own_status(agent):
    broken, spare = Echo("echo", _refuse_connection), Echo("spare")
    broken.effect = spare.effect = "read"
    broken.fallback_tool = "spare"
    runtime = agent(CALL, Says(answer="a"), tools=[broken, spare])

    events = [event async for event in runtime.stream("Go.")]

    [step] = [e.data for e in events if e.type is EventType.STEP and e.data["kind"] == "tool"]
    assert (step["action"], step["called"], step["status"]) == ("spare", "echo", "done")
    assert events[-1].data["stopped_reason"] == "completed"


def test_an_error_class_is_found_by_its_name():
    assert errors.error_class("MaxStepsExceeded") is MaxStepsExceeded
    assert errors.error_class("Anything") is errors.AgentError
    assert ToolResult("", "broken").is_error
