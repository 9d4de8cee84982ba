"""What a call reports while it runs becomes events of its step."""

import asyncio
import math
import threading

import pytest

from agents.engine import FallbackStrategy, ToolResult, call_timeout, function_tool
from agents.engine.call_context import CallContext, RunContext, current, use_run
from agents.engine.events import EventType, StatusKind
from agents.engine.loop import record_outcomes
from agents.engine.testing import Call, ContextTool, Says
from tests.engine.conftest import Echo


def status(events, kind):
    return [e.data for e in events if e.type is EventType.STATUS and e.data["kind"] == kind]


async def events_of(agent, tool, calls=1):
    turn = Says("Working.", tuple(Call(tool.name, {"input": str(n)}) for n in range(calls)))
    return [
        event async for event in agent(turn, Says(answer="Done."), tools=[tool]).stream("Go")
    ]


async def test_progress_is_an_event_between_the_call_and_its_result(agent):
    async def work(context):
        context.report_progress(1, 4, "Reading  \n pages")
        await asyncio.sleep(0.01)
        return "read"

    events = await events_of(agent, ContextTool(work))

    types = [event.type for event in events]
    at = next(i for i, e in enumerate(events) if e.data.get("kind") == StatusKind.TOOL_PROGRESS)
    assert types.index(EventType.TOOL_CALL) < at < types.index(EventType.TOOL_RESPONSE)
    call = next(e for e in events if e.type is EventType.TOOL_CALL)
    assert events[at].data == {
        "kind": "tool_progress",
        "tool": "work",
        "progress": 1,
        "total": 4,
        "message": "Reading pages",
        "step": call.data["step"],
    }
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_frequent_progress_is_thinned_out_and_the_last_one_always_sent(agent):
    async def work(context):
        for number in range(1, 501):
            context.report_progress(number, 500)
            await asyncio.sleep(0)
        return "done"

    reports = status(await events_of(agent, ContextTool(work)), StatusKind.TOOL_PROGRESS)

    assert 2 <= len(reports) <= 8
    assert reports[-1]["progress"] == 500


async def test_a_progress_message_is_truncated_and_redacted(agent):
    async def work(context):
        context.report_progress(1, message="password=hunter2 " + "x" * 2000)
        return "done"

    [report] = status(await events_of(agent, ContextTool(work)), StatusKind.TOOL_PROGRESS)

    assert "hunter2" not in report["message"]
    assert len(report["message"]) <= 300


@pytest.mark.parametrize("total", [0, -1, math.inf, math.nan, None])
async def test_an_unusable_total_means_that_the_rest_is_unknown(agent, total):
    async def work(context):
        context.report_progress(math.nan)
        context.report_progress(-3, total)
        return "done"

    [report] = status(await events_of(agent, ContextTool(work)), StatusKind.TOOL_PROGRESS)

    assert (report["progress"], report["total"]) == (0, None)


async def test_a_blocking_function_reports_progress_from_its_thread(agent):
    threads = []

    @function_tool(effect="read")
    def count(input: str) -> str:
        threads.append(threading.current_thread().name)
        current().report_progress(2, 3, "two")
        return "counted"

    reports = status(await events_of(agent, count), StatusKind.TOOL_PROGRESS)

    assert threads == ["tool"]
    assert [report["progress"] for report in reports] == [2]


@pytest.mark.parametrize("dialect", ["native"])  # ReAct text has one call per turn
async def test_concurrent_calls_report_to_their_own_steps(agent):
    async def work(context):
        context.report_progress(1, 2)
        await asyncio.sleep(0.01)
        return "done"

    events = await events_of(agent, ContextTool(work), calls=3)

    calls = [e.data["step"] for e in events if e.type is EventType.TOOL_CALL]
    reports = status(events, StatusKind.TOOL_PROGRESS)
    assert len(calls) == 3
    assert [report["step"] for report in reports] == calls


async def test_a_call_knows_who_it_is_for(agent):
    async def work(context):
        return f"{context.user_id} in {context.chat_id}"

    with use_run(RunContext(user_id="7", chat_id="chat.3")):
        events = await events_of(agent, ContextTool(work))

    [response] = [e.data for e in events if e.type is EventType.TOOL_RESPONSE]
    assert response["content"] == "7 in chat.3"


async def test_progress_gives_a_call_its_full_timeout_again():
    deadlines = []

    async def work(context):
        for number in range(3):
            deadlines.append(context.timeout._timeout.when())
            await asyncio.sleep(0.01)
            context.report_progress(number)
        return "done"

    await FallbackStrategy().execute_with_fallback(ContextTool(work, timeout=30), {})

    assert deadlines == sorted(set(deadlines))


async def test_progress_extends_a_timeout_only_up_to_the_ceiling(monkeypatch):
    monkeypatch.setattr(call_timeout, "MAX_CALL_SECONDS", 0.1)

    async def work(context):
        while True:
            context.report_progress(1)
            await asyncio.sleep(0.01)

    tool = ContextTool(work, effect="idempotent", timeout=0.05)
    result = await FallbackStrategy().execute_with_fallback(tool, {})

    assert result.error == "work didn't respond within 0.05 s."


async def test_time_spent_waiting_does_not_count_against_the_timeout():
    deadlines = []

    async def work(context):
        deadlines.append(context.timeout._timeout.when())
        with context.timeout.pause():
            await asyncio.sleep(0.01)
            deadlines.append(context.timeout._timeout.when())
        deadlines.append(context.timeout._timeout.when())
        return "done"

    await FallbackStrategy().execute_with_fallback(ContextTool(work, timeout=30), {})

    before, meanwhile, after = deadlines
    assert meanwhile is None
    assert after > before


async def test_a_call_that_hangs_after_a_pause_still_times_out():
    async def work(context):
        with context.timeout.pause():
            await asyncio.sleep(0.01)
        await asyncio.Event().wait()

    tool = ContextTool(work, effect="idempotent", timeout=0.05)
    result = await FallbackStrategy().execute_with_fallback(tool, {})

    assert result.is_outage


async def test_every_repetition_is_an_event_of_the_step(agent):
    async def work(context):
        if tool.calls < 3:
            raise ConnectionError("refused, key=abc123")
        return "at last"

    tool = ContextTool(work)
    events = await events_of(agent, tool)

    retries = status(events, StatusKind.RETRY)
    assert [(r["tool"], r["attempt"]) for r in retries] == [("work", 2), ("work", 3)]
    assert retries[0]["message"] == "work failed: ConnectionError: refused, key=***"
    assert {r["step"] for r in retries} == {2}


@pytest.mark.parametrize(
    ("effect", "calls"), [("read", 2), ("idempotent", 1), ("at_most_once", 1)]
)
async def test_a_timed_out_call_is_repeated_once_and_only_if_it_is_read_only(effect, calls):
    async def work(context):
        await asyncio.Event().wait()

    tool = ContextTool(work, effect=effect, timeout=0.02)
    result = await FallbackStrategy(pause=0).execute_with_fallback(tool, {})

    assert (tool.calls, result.attempts, result.degraded) == (calls, calls, True)


async def test_a_tool_that_raised_its_own_timeout_is_not_retried():
    async def give_up(_):
        return ToolResult(error="The server didn't respond.", is_late=True)

    tool = Echo(does=give_up)
    result = await FallbackStrategy(pause=0).execute_with_fallback(tool, {})

    assert (len(tool.inputs), result.degraded) == (1, True)


async def test_a_run_stopped_while_a_report_is_read_stops_the_call(agent):
    ended = []

    async def work(context):
        context.report_progress(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    runtime = agent(Says.call("work"), tools=[ContextTool(work, effect="idempotent")])
    with record_outcomes() as outcomes:
        events = runtime.stream("Go")
        async for event in events:
            if event.data.get("kind") == StatusKind.TOOL_PROGRESS:
                break
        await events.aclose()

    assert ended == ["cancelled"]
    assert [outcome.status for outcome in outcomes.values()] == ["unknown"]


async def test_progress_and_questions_outside_a_run_do_nothing():
    async def echo(_):
        current().report_progress(1)
        current().report_retry("busy", 2, 0.1)
        current().extend_timeout()
        return ToolResult("fine")

    context = CallContext()

    assert (await Echo(does=echo).execute({})).output == "fine"
    context.extend_timeout()  # there is no attempt to extend


async def test_what_another_model_used_for_a_call_counts_for_the_run(agent):
    image = {"model": "painter", "cost": 0.04, "prompt_tokens": 5, "completion_tokens": 900}

    async def work(context):
        context.report_usage({**image, "total_tokens": 905, "estimated": False})
        return "painted"

    events = await events_of(agent, ContextTool(work))

    [used] = [e.data for e in events if e.type is EventType.USAGE and e.data["cost"]]
    call = next(e for e in events if e.type is EventType.TOOL_CALL)
    assert (used["model"], used["step"], used["is_added"]) == ("painter", call.data["step"], 1)
    assert events[-1].data["usage"]["cost"] == 0.04
    assert events[-1].data["usage"]["completion_tokens"] >= 900
