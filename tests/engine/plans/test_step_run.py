import asyncio

import pytest

from agents.engine import (
    ReActPlanner,
)
from agents.engine.events import EventType
from agents.engine.loop.handoff import Handoff
from agents.engine.loop.termination import standard_policy
from agents.engine.loop.tool_calls.approval import AskPersonTool
from agents.engine.plans.definition.plan import ExecutionPlan, ExecutionStep
from agents.engine.testing import Says, ScriptedModel
from agents.engine.tool import uncertain_message
from tests.engine.conftest import Echo, make_runtime
from tests.engine.plans.plans import (
    decision_event,
    of,
    outcomes,
    outputs,
    run_to_end,
    step,
    workflow,
)

LITTLE = standard_policy(max_tokens=1)


def helper(*answers: str) -> Handoff:
    """Return a handoff to an agent that costs tokens."""
    model = ScriptedModel(*(Says(answer=answer) for answer in answers))
    agent = make_runtime(ReActPlanner(model, "scripted"), name="helper")
    return Handoff("helper", lambda: agent)


def asks(name: str, **more) -> ExecutionStep:
    return ExecutionStep(name=name, agent="helper", arguments={"task": "Do it."}, **more)


def why(events, name: str) -> str:
    return next(e["reason"] for e in of(events, EventType.STEP) if e.get("action") == name)


async def test_no_loop_item_starts_when_the_budget_is_spent():
    each = asks("a", for_each=[1, 2, 3])

    events = await run_to_end(workflow(each, tools=[helper("one")], policy=LITTLE))

    assert outcomes(events) == {"a[0]": "done", "a": "failed"}
    assert why(events, "a") == "The run reached its token limit (1 tokens)."
    assert events[-1].data["stopped_reason"] == "budget_exceeded"


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_step_respects_the_tools_call_limit(parallel):
    twice = standard_policy(tool_limits={"echo": 2})
    each = step("a", for_each=[1, 2, 3], parallel=parallel)

    events = await run_to_end(workflow(each, tools=[Echo()], policy=twice))

    assert outcomes(events) == {"a[0]": "done", "a[1]": "done", "a[2]": "failed", "a": "failed"}
    assert why(events, "a[2]") == "The agent can call 'echo' up to 2 times per run."
    assert len(of(events, EventType.TOOL_CALL)) == 2


async def test_the_default_call_limit_does_not_apply_to_written_workflows():
    each = step("a", for_each=[*range(7)])

    events = await run_to_end(workflow(each, tools=[Echo()], policy=standard_policy()))

    assert outcomes(events)["a"] == "done"


async def test_no_repetition_starts_when_the_budget_is_spent():
    again = asks("a", until="output == 'never'", rounds=3)

    events = await run_to_end(workflow(again, tools=[helper("one")], policy=LITTLE))

    assert outcomes(events) == {"a": "failed"}
    assert why(events, "a") == "The run reached its token limit (1 tokens)."


async def test_a_step_is_not_retried_when_the_budget_is_spent(monkeypatch):
    monkeypatch.setattr("agents.engine.plans.execution.attempts.RETRY_SECONDS", 0)
    again = asks("a", retry=3, expected_outcome="${output == 'never'}")

    events = await run_to_end(workflow(again, tools=[helper("one")], policy=LITTLE))

    assert outputs(events) == {"a": "one"}
    assert why(events, "a") == "The run reached its token limit (1 tokens)."


async def test_a_nested_plan_fails_when_the_budget_is_spent():
    whole = ExecutionStep(name="whole", plan=ExecutionPlan(steps=[asks("x")]))
    short = ExecutionStep(name="short", plan=ExecutionPlan(steps=[asks("x"), step("y")]))

    ended = [
        outcomes(
            await run_to_end(workflow(outer, tools=[helper("one"), Echo()], policy=LITTLE))
        )
        for outer in (whole, short)
    ]

    assert ended == [{"x": "done", "whole": "done"}, {"x": "done", "short": "failed"}]


@pytest.mark.parametrize(
    "asking",
    [ExecutionStep(name="a", ask="May I?", approves=True, retry=2), step("a", "send", retry=2)],
    ids=["a question", "a tool that asks first"],
)
async def test_a_rejected_question_is_not_asked_again(asking):
    send = Echo("send")
    send.needs_approval = True
    flow = workflow(asking, tools=[send, AskPersonTool()])
    events = await run_to_end(flow)

    no = decision_event(events, "Not now.", is_approved=False)
    gone_on = [e async for e in flow.resume([*events, no])]

    assert outcomes(gone_on) == {"a": "failed"}
    assert "Not now." in why(gone_on, "a")
    assert of(gone_on, EventType.APPROVAL_REQUESTED) == send.inputs == []


async def test_sequential_steps_wait_while_one_awaits_approval():
    first = ExecutionStep(name="first", ask="May I?", approves=True)
    flow = workflow(first, step("next"), step("beside", parallel=True),
                    tools=[Echo(), AskPersonTool()])  # fmt: skip

    events = await run_to_end(flow)
    gone_on = [e async for e in flow.resume([*events, decision_event(events, "Yes.")])]

    assert outcomes(events) == {"beside": "done"}
    assert outcomes(gone_on) == {"first": "done", "next": "done"}


async def test_a_loop_item_waits_while_the_previous_one_awaits_approval():
    asked = ExecutionStep(name="ok", ask="Do ${item}?", approves=True, condition="item == 1")
    does = step("do", "echo", "ok", arguments={"text": "no. ${item}"})
    inner = ExecutionPlan(steps=[asked, does])
    echo = Echo()
    flow = workflow(
        ExecutionStep(name="each", plan=inner, for_each=[1, 2]), tools=[echo, AskPersonTool()]
    )

    events = await run_to_end(flow)
    assert echo.inputs == []

    gone_on = [e async for e in flow.resume([*events, decision_event(events, "Yes.")])]
    assert outputs(gone_on)["each"] == ["no. 1", "no. 2"]


async def _hangs(input):
    await asyncio.sleep(60)


def left_open(events) -> set[int]:
    begins = (EventType.TASK, EventType.TOOL_CALL, EventType.APPROVAL_REQUESTED)
    begun = {e["step"] for type in begins for e in of(events, type) if e.get("kind") != "plan"}
    return begun - {e["step"] for e in of(events, EventType.STEP)}


async def test_a_resumed_step_that_times_out_leaves_no_open_step():
    steps = [step("a", "slow", timeout=0.05, for_each=[1, 2], parallel=True)]
    whole = await run_to_end(workflow(*steps, tools=[Echo("slow", _hangs)]))

    for at in range(1, len(whole)):
        flow = workflow(*steps, tools=[Echo("slow", _hangs)])
        events = [*whole[:at], *[e async for e in flow.resume(whole[:at])]]
        responses = [e["tool_call_id"] for e in of(events, EventType.TOOL_RESPONSE)]
        assert left_open(events) == set(), at
        assert len(responses) == len(set(responses)), at


async def test_a_question_in_a_step_that_times_out_is_closed():
    asked = ExecutionStep(name="ask", ask="May I?", approves=True, parallel=True)
    inner = ExecutionPlan(steps=[asked, step("wait", "slow", parallel=True)])
    outer = ExecutionStep(name="outer", plan=inner, timeout=0.05)

    events = await run_to_end(workflow(outer, tools=[Echo("slow", _hangs), AskPersonTool()]))

    question = of(events, EventType.APPROVAL_REQUESTED)[0]["step"]
    ends = {e["step"]: e["status"] for e in of(events, EventType.STEP)}
    assert ends[question] == "cancelled"
    assert left_open(events) == set()
    assert why(events, "outer") == "Timed out after 0.05 s."


async def test_a_timed_out_at_most_once_step_is_reported_as_uncertain():
    pay, look = Echo("pay", _hangs), Echo("look", _hangs)
    pay.effect, look.effect = "at_most_once", "read"
    steps = [step(name, name, timeout=0.05) for name in ("pay", "look")]

    events = await run_to_end(workflow(*steps, tools=[pay, look]))

    late = "Timed out after 0.05 s."
    ends = {e["action"]: e["reason"] for e in of(events, EventType.STEP) if "reason" in e}
    assert ends == {"pay": uncertain_message(late), "look": late}
