import asyncio

import pytest

from agents.engine import ToolResult
from agents.engine.events import EventType
from agents.engine.loop.tool_calls.approval import AskPersonTool
from agents.engine.plans.definition.plan import ALWAYS, FAILURE, ExecutionPlan, ExecutionStep
from agents.engine.testing import Says
from tests.engine.conftest import Echo
from tests.engine.plans.plans import (
    decision_event,
    of,
    outcomes,
    outputs,
    run_to_end,
    step,
    workflow,
)


async def _fails(input):
    return ToolResult(error="It is broken.", mendable=True)


class Rows:
    """A tool that returns a table."""

    name, description, effect = "rows", "Gives rows.", "read"
    parameters = {"type": "object"}

    async def execute(self, input):
        return ToolResult('{"rows": [{"total": 3}, {"total": 5}]}')


async def test_a_step_starts_when_its_dependencies_are_done():
    echo = Echo()

    events = await run_to_end(workflow(step("b", "echo", "a"), step("a"), tools=[echo]))

    assert [input["text"] for input in echo.inputs] == ["a", "b"]
    assert outcomes(events) == {"a": "done", "b": "done"}
    assert events[-1].data["stopped_reason"] == "completed"
    assert events[-1].data["answer"] == "b"


async def test_references_pass_outputs_on_with_their_type():
    echo = Echo()
    later = step("b", arguments={"text": "${steps.a.output.rows[1].total} of ${parameters.m}"})

    await run_to_end(
        workflow(step("a", "rows"), later, tools=[echo, Rows()], parameters={"m": "May"})
    )

    assert echo.inputs == [{"text": "5 of May"}]


async def test_a_note_on_a_result_is_sent_to_the_model_but_not_part_of_the_output():
    async def rounded(input):
        return ToolResult("3.33", note="rounded")

    events = await run_to_end(workflow(step("a"), tools=[Echo(does=rounded)]))

    assert of(events, EventType.TOOL_RESPONSE)[0]["content"] == "3.33 (rounded)"
    assert str(outputs(events)["a"]) == "3.33"


async def test_parallel_steps_run_together_and_others_one_at_a_time():
    at_once, most = {"fast": 0, "slow": 0}, {"fast": 0, "slow": 0}

    def counting(kind):
        async def does(input):
            at_once[kind] += 1
            most[kind] = max(most[kind], at_once[kind])
            await asyncio.sleep(0.02)
            at_once[kind] -= 1
            return ToolResult("ok")

        return Echo(kind, does)

    beside = [step(f"f{n}", "fast", parallel=True) for n in range(5)]
    alone = [step(f"s{n}", "slow") for n in range(3)]
    await run_to_end(workflow(*beside, *alone, tools=[counting("fast"), counting("slow")]))

    assert most == {"fast": 5, "slow": 1}


async def test_a_failure_that_a_step_handled_completes_the_workflow():
    broken = Echo("broken", _fails)
    steps = [
        step("a", "broken"),
        step("next", "echo", "a"),
        step("after", "echo", "next"),
        step("mend", "echo", "a", condition=FAILURE),
        step("last", "echo", "a", "mend", condition=ALWAYS),
    ]

    events = await run_to_end(workflow(*steps, tools=[Echo(), broken]))

    assert outcomes(events) == {"a": "failed", "mend": "done", "last": "done"}
    assert events[-1].data["stopped_reason"] == "completed"


@pytest.mark.parametrize(
    ("handler", "condition", "reason"),
    [("echo", FAILURE, "completed"), ("broken", FAILURE, "error"), ("echo", ALWAYS, "error")],
)
async def test_only_a_finished_handler_of_a_failure_completes_it(handler, condition, reason):
    steps = [
        step("a", "broken"),
        step("next", "echo", "a"),
        step("mend", handler, "next", condition=condition),
    ]

    events = await run_to_end(workflow(*steps, tools=[Echo(), Echo("broken", _fails)]))

    assert events[-1].data["stopped_reason"] == reason
    assert (events[-1].data["detail"] == "") is (reason == "completed")


async def test_a_false_condition_skips_the_step_with_a_reason():
    steps = [
        step("a", "rows"),
        step("b", condition="steps.a.output.rows[0].total > 3"),
        step("c", "echo", "b"),
    ]

    events = await run_to_end(workflow(*steps, tools=[Echo(), Rows()]))

    assert outcomes(events) == {"a": "done", "b": "skipped", "c": "done"}
    skipped = next(e for e in of(events, EventType.STEP) if e.get("action") == "b")
    assert "steps.a.output.rows[0].total > 3" in skipped["reason"]


async def test_for_each_runs_the_step_per_item_and_returns_a_list():
    each = step(
        "b", for_each="steps.a.output.rows", arguments={"text": "${item.total}/${index}"}
    )

    events = await run_to_end(workflow(step("a", "rows"), each, tools=[Echo(), Rows()]))

    assert outputs(events)["b"] == ["3/0", "5/1"]
    assert outcomes(events)["b[1]"] == "done"


async def test_until_repeats_the_step_up_to_its_limit():
    counts = iter(range(1, 10))

    async def counts_up(input):
        return ToolResult(str(next(counts)))

    again = step("a", "count", until="number(output) >= 3", rounds=5)
    never = step("b", "count", "a", until="number(output) > 100", rounds=2)
    events = await run_to_end(workflow(again, never, tools=[Echo("count", counts_up)]))

    assert outputs(events)["a"] == "3"
    assert outcomes(events) == {"a": "done", "b": "failed"}
    assert "2 rounds" in events[-1].data["detail"]


async def test_a_failed_step_is_retried_as_often_as_configured(monkeypatch):
    monkeypatch.setattr("agents.engine.plans.execution.attempts.RETRY_SECONDS", 0)
    results = iter([ToolResult(error="no", mendable=True), ToolResult("yes")])

    async def at_last(input):
        return next(results)

    events = await run_to_end(
        workflow(step("a", "late", retry=2), tools=[Echo("late", at_last)])
    )

    assert outputs(events) == {"a": "yes"}
    assert len(of(events, EventType.TOOL_CALL)) == 2


async def test_an_at_most_once_tool_is_not_retried():
    once = Echo("pay", _fails)
    once.effect = "at_most_once"

    events = await run_to_end(workflow(step("a", "pay", retry=3), tools=[once]))

    assert outcomes(events) == {"a": "failed"}
    assert len(once.inputs) == 1


async def test_a_step_that_times_out_leaves_no_open_step():
    async def hangs(input):
        await asyncio.sleep(60)

    events = await run_to_end(
        workflow(step("a", "slow", timeout=0.05), tools=[Echo("slow", hangs)])
    )

    assert outcomes(events) == {"a": "failed"}
    assert "0.05 s" in events[-1].data["detail"]
    begun = {e["step"] for t in (EventType.TASK, EventType.TOOL_CALL) for e in of(events, t)}
    assert begun == {e["step"] for e in of(events, EventType.STEP)}


async def test_a_nested_plan_returns_the_output_of_its_last_step():
    inner = ExecutionPlan(
        steps=[step("x"), step("y", "echo", "x", arguments={"text": "${steps.a.output}!"})]
    )
    nested = ExecutionStep(name="n", plan=inner, depends_on=("a",))

    events = await run_to_end(workflow(step("a"), nested, tools=[Echo()]))

    assert outputs(events)["n"] == "a!"
    parents = {e["name"]: e.get("parent") for e in of(events, EventType.TASK)}
    rows = {e["name"]: e["step"] for e in of(events, EventType.TASK)}
    assert parents["x"] == parents["y"] == rows["n"]


async def test_an_expectation_that_is_an_expression_needs_no_model():
    steps = [
        step("a", "rows", expected_outcome="${len(output.rows) == 2}"),
        step("b", "rows", expected_outcome="${len(output.rows) > 2}"),
    ]

    events = await run_to_end(workflow(*steps, tools=[Rows()]))

    assert [e["is_met"] for e in of(events, EventType.EVALUATION)] == [True, False]
    assert outcomes(events) == {"a": "done", "b": "failed"}


async def test_an_expectation_in_prose_is_judged_by_the_model():
    no = '{"is_met": false, "reason": "There is no total.", "feedback": "Ask for it."}'
    judged = step("a", expected_outcome="a total")

    events = await run_to_end(workflow(judged, tools=[Echo()], script=[Says(answer=no)]))

    assert of(events, EventType.EVALUATION)[0]["reason"] == "There is no total."
    assert outcomes(events) == {"a": "failed"}
    assert [e.agent for e in events if e.type is EventType.HANDOFF] == ["monitor"]


async def test_a_question_to_a_user_does_not_block_independent_steps():
    asks = ExecutionStep(name="ask", ask="Which of ${steps.a.output}?", role="legal")
    flow = workflow(
        step("a"),
        asks,
        step("b", parallel=True),
        step("c", "echo", "ask"),
        tools=[Echo(), AskPersonTool()],
    )

    events = await run_to_end(flow)

    assert events[-1].type is EventType.RUN_PAUSED
    assert outcomes(events) == {"a": "done", "b": "done"}
    question = of(events, EventType.APPROVAL_REQUESTED)[0]
    assert (question["why"], question["role"]) == ("question", "legal")
    assert "Which of a?" in question["function"]["arguments"]

    gone_on = [e async for e in flow.resume([*events, decision_event(events, "The first.")])]
    assert outputs(gone_on)["ask"] == "The first."
    assert outcomes(gone_on)["c"] == "done"


async def test_a_rejection_cancels_the_workflow_with_the_users_reason():
    asks = ExecutionStep(name="ask", ask="Send it?", approves=True)
    flow = workflow(asks, step("send", "echo", "ask"), tools=[Echo(), AskPersonTool()])
    events = await run_to_end(flow)

    no = decision_event(events, "Not now.", is_approved=False)
    gone_on = [e async for e in flow.resume([*events, no])]

    assert gone_on[-1].data["stopped_reason"] == "cancelled"
    assert "Not now." in gone_on[-1].data["detail"]
    assert "send" not in outcomes(gone_on)


CUT = [
    step("a", "rows"),
    step(
        "b", "echo", "a", parallel=True, arguments={"text": "b${steps.a.output.rows[0].total}"}
    ),
    step("c", parallel=True, for_each=[1, 2], arguments={"text": "n${item}"}),
    step("d", "echo", "b", "c", condition="len(steps.c.output) == 3"),
    step("e", "echo", "d", expected_outcome="${output == 'e'}"),
]


async def test_a_workflow_interrupted_after_any_event_has_the_same_result():
    whole = await run_to_end(workflow(*CUT, tools=[Echo(), Rows()]))

    for at in range(1, len(whole)):
        rest = [e async for e in workflow(*CUT, tools=[Echo(), Rows()]).resume(whole[:at])]
        events = [*whole[:at], *rest]
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert outcomes(events) == outcomes(whole), at
        assert events[-1].data["answer"] == whole[-1].data["answer"]
        ends = [e["step"] for e in of(events, EventType.STEP)]
        assert len(ends) == len(set(ends)), f"a row was ended twice after {at}"
        begun = {e["step"] for e in of(events, EventType.TASK)}
        assert begun <= set(ends), f"a row was left open after {at}"
        responses = [e["tool_call_id"] for e in of(events, EventType.TOOL_RESPONSE)]
        assert len(responses) == len(set(responses))


async def test_a_retried_step_is_closed_once_wherever_it_is_interrupted(monkeypatch):
    monkeypatch.setattr("agents.engine.plans.execution.attempts.RETRY_SECONDS", 0)
    steps = [step("a", "broken", retry=2), step("b", until="output == 'no'", rounds=3)]
    tools = [Echo("broken", _fails), Echo()]
    whole = await run_to_end(workflow(*steps, tools=tools))

    for at in range(1, len(whole)):
        rest = [e async for e in workflow(*steps, tools=tools).resume(whole[:at])]
        ends = [e["step"] for e in of([*whole[:at], *rest], EventType.STEP)]
        assert len(ends) == len(set(ends)), f"a row was ended twice after {at}"


async def test_an_at_most_once_call_waits_for_a_user_after_an_interruption():
    once = Echo()
    once.effect = "at_most_once"
    whole = await run_to_end(workflow(step("a"), tools=[once]))
    called = next(at for at, e in enumerate(whole) if e.type is EventType.TOOL_CALL)

    rest = [e async for e in workflow(step("a"), tools=[once]).resume(whole[: called + 1])]

    assert rest[-1].type is EventType.RUN_PAUSED
    assert of(rest, EventType.APPROVAL_REQUESTED)[0]["why"] == "unknown"
    assert len(once.inputs) == 1


async def test_parallel_calls_are_recorded_before_they_run():
    kept, seen = [], []

    async def looks(input):
        seen.append(sum(event.type is EventType.TOOL_CALL for event in kept))
        return ToolResult("ok")

    flow = workflow(*(step(f"s{n}", "look", parallel=True) for n in range(4)),
                    tools=[Echo("look", looks)])  # fmt: skip
    async for event in flow.stream("Go."):
        kept.append(event)

    assert all(count >= at for at, count in enumerate(seen, 1))


async def test_stopping_cancels_all_running_steps():
    ended = []

    async def hangs(input):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(input["text"])

    flow = workflow(*(step(f"s{n}", "slow", parallel=True) for n in range(3)),
                    tools=[Echo("slow", hangs)])  # fmt: skip
    running = asyncio.create_task(run_to_end(flow))
    await asyncio.sleep(0.1)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(ended) == ["s0", "s1", "s2"]
