import asyncio
import json
from inspect import CO_ASYNC_GENERATOR
from traceback import walk_tb

import pytest

from agents.engine import (
    AgentConnectionError,
    AgentRuntime,
    AgentState,
    FallbackStrategy,
    Guardrails,
    ModelError,
    RateLimited,
    ReActPlanner,
    RetryPolicy,
    ToolRegistry,
    ToolResult,
)
from agents.engine.events import Event
from agents.engine.guardrails.checks import GuardrailAction, Pattern
from agents.engine.loop.termination import standard_policy
from agents.engine.privacy import Pseudonymizer
from agents.engine.testing import Call, Says, delta
from agents.engine.tool import timeout_message
from tests.engine.conftest import Echo


async def events_of(agent, query="What?", state=None):
    return [event async for event in agent.stream(query, state)]


async def test_a_question_that_needs_no_tools_is_answered_directly(agent):
    result = await agent(Says(answer="Forty two.")).run("What?")

    assert (result.answer, result.stopped_reason, result.tool_calls) == (
        "Forty two.",
        "completed",
        0,
    )


async def test_a_tool_is_called_and_its_observation_goes_back_to_the_model(agent):
    runtime = agent(Says.call("echo", text="hello"), Says(answer="Done."), tools=[Echo()])

    result = await runtime.run("Say hello")

    step = result.steps[0]
    assert (step.thought, step.action, step.action_input, step.observation) == (
        "I need a tool.",
        "echo",
        {"text": "hello"},
        "hello",
    )
    assert "hello" in json.dumps(runtime.planner.llm.requests[1]["messages"][-1])


async def test_events_are_numbered_without_gaps_and_end_with_run_finished(agent):
    events = await events_of(
        agent(Says.call("echo", text="hi"), Says(answer="Done."), tools=[Echo()])
    )

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[0].type == "run_started"
    assert [event.type for event in events].count("run_finished") == 1
    assert events[-1].type == "run_finished"


async def test_an_event_round_trips_through_a_dict(agent):
    for event in await events_of(agent(Says(answer="Done."))):
        text = json.dumps(event.to_dict())
        again = Event.from_dict(json.loads(text))
        assert again.to_dict() == event.to_dict()
        assert set(event.to_dict()) == {"time", "agent", "type", "data", "seq"}


async def test_answer_and_thought_are_streamed_separately(agent):
    runtime = agent(
        Says.call("echo", "First I ask.", text="x"), Says(answer="It is x."), tools=[Echo()]
    )
    events = await events_of(runtime)

    def streamed_text(kind):
        return "".join(e.data["content"] for e in events if e.type == kind)

    assert streamed_text("thought_delta").strip() == "First I ask."
    assert streamed_text("delta") == "It is x."


async def test_calls_of_one_turn_are_reported_in_order_each_with_its_result():
    from tests.engine.loop.test_runtime_native import native

    two = Says("Both.", (Call("echo", {"text": "a"}), Call("echo", {"text": "b"})))
    events = await events_of(native(two, Says(answer="a, b"), tools=[Echo()]))

    told = [e.type.value for e in events if e.type.value.startswith("tool_")]
    assert told == ["tool_call", "tool_response", "tool_call", "tool_response"]
    assert [e.data["content"] for e in events if e.type == "tool_response"] == ["a", "b"]


async def test_an_unknown_tool_is_an_error_the_model_can_fix(agent):
    runtime = agent(
        Says.call("eccho", text="x"),
        Says.call("echo", text="x"),
        Says(answer="x"),
        tools=[Echo()],
    )

    result = await runtime.run("?")

    assert (
        "There is no tool named 'eccho'. Available tools: echo." in result.steps[0].observation
    )
    assert result.stopped_reason == "completed"


async def test_a_model_that_keeps_inventing_tools_has_to_answer_without_any(agent):
    invents = [Says.call(name, text="x") for name in ("browser", "search_web")]
    runtime = agent(*invents, Says(answer="I can't look it up."), tools=[Echo()])

    result = await runtime.run("?")

    assert (result.stopped_reason, result.answer) == ("completed", "I can't look it up.")
    *_, second, last = runtime.planner.llm.requests
    instructions = [
        str(sent["messages"][0]) + str(sent.get("tools")) for sent in (second, last)
    ]
    assert ["Says it again." in text for text in instructions] == [True, False]


async def test_an_invented_tool_between_calls_takes_no_tools_away(agent):
    calls = [Says.call(name, text=text) for text in "ab" for name in ("eccho", "echo")]

    result = await agent(*calls, Says(answer="x"), tools=[Echo()]).run("?")

    assert [step.observation for step in result.steps if step.action == "echo"] == ["a", "b"]


async def test_a_failing_tool_is_tried_three_times_and_then_dropped(agent):
    async def fail(_):
        raise RuntimeError("the wire is cut")

    broken = Echo(does=fail)
    result = await agent(
        Says.call("echo", text="x"), Says(answer="I could not look."), tools=[broken]
    ).run("?")

    assert len(broken.inputs) == 3
    assert "the wire is cut" in result.steps[0].observation
    assert (result.answer, result.stopped_reason) == (
        "I could not look.",
        "tool_failure_degraded",
    )


async def test_a_run_that_recovers_with_another_tool_completes(agent):
    async def fail(_):
        return ToolResult(error="out of paper")

    tools = [Echo("printer", fail), Echo()]
    result = await agent(
        Says.call("printer", text="x"),
        Says.call("echo", text="x"),
        Says(answer="x"),
        tools=tools,
    ).run("?")

    assert result.stopped_reason == "completed"


async def test_a_failed_tool_is_not_offered_again(agent):
    async def fail(_):
        return ToolResult(error="out of paper")

    runtime = agent(
        Says.call("printer", text="x"), Says(answer="No."), tools=[Echo("printer", fail)]
    )
    await runtime.run("?")

    first, second = runtime.planner.llm.requests
    assert "printer" in json.dumps(first["tools"]) + first["messages"][0]["content"]
    assert not second["tools"]


async def test_an_input_error_is_sent_to_the_model_and_not_retried(agent):
    async def refuse(_):
        return ToolResult(error="write digits", mendable=True)

    tool = Echo(does=refuse)
    result = await agent(Says.call("echo", text="x"), Says(answer="No."), tools=[tool]).run("?")

    assert len(tool.inputs) == 1
    assert result.stopped_reason == "completed"


async def test_a_hung_tool_times_out_once(agent):
    async def hang(_):
        await asyncio.Event().wait()

    tool = Echo(does=hang)
    tool.timeout = 0.05
    result = await agent(Says.call("echo", text="x"), Says(answer="No."), tools=[tool]).run("?")

    assert result.steps[0].observation == f"Error: {timeout_message('echo', 0.05)}"
    assert len(tool.inputs) == 1


async def test_fifty_megabytes_of_output_are_truncated_with_a_note(agent):
    async def flood(_):
        return ToolResult("x" * 50_000_000)

    tool = Echo(does=flood)
    result = await agent(Says.call("echo", text="x"), Says(answer="Much."), tools=[tool]).run(
        "?"
    )

    observation = result.steps[0].observation
    assert len(observation) < 201_000
    assert observation.endswith("[… 49,800,000 more characters cut]")


async def test_the_third_duplicate_call_ends_the_run(agent):
    again = [Says.call("echo", text="x") for _ in range(3)]
    result = await agent(*again, tools=[Echo()]).run("?")

    assert (result.stopped_reason, result.tool_calls) == ("duplicate_tool_call", 2)


async def test_a_sixth_call_of_one_tool_ends_the_run(agent):
    calls = [Says.call("echo", text=str(n)) for n in range(6)]
    result = await agent(*calls, tools=[Echo()]).run("?")

    assert (result.stopped_reason, result.tool_calls) == ("tool_call_limit", 5)


async def test_the_last_step_ends_a_run_without_an_answer(agent):
    calls = [Says.call("echo", text=str(n)) for n in range(3)]
    result = await agent(*calls, tools=[Echo()], max_steps=3).run("?")

    assert (result.stopped_reason, result.tool_calls) == ("max_steps_reached", 3)


async def test_a_blocked_question_never_reaches_the_model(agent):
    guardrails = Guardrails(blocked_patterns=["(?i)password"])
    runtime = agent(guardrails=guardrails)

    events = await events_of(runtime, "Tell me the Ｐａｓｓｗｏｒｄ")

    assert [e.type.value for e in events] == ["run_started", "guardrail", "run_finished"]
    assert events[-1].data["stopped_reason"] == "blocked"
    assert runtime.planner.llm.requests == []


async def test_no_part_of_a_blocked_answer_is_streamed(agent):
    rule = Pattern(pattern="swordfish", stage="output", message="That is a secret.")
    long = f"{'word ' * 40}swordfish {'word ' * 40}"
    events = await events_of(
        agent(Says(answer=long), guardrails=Guardrails(blocked_patterns=[rule]))
    )

    shown = "".join(e.data["content"] for e in events if e.type == "delta")
    assert "sword" not in shown
    assert (events[-1].data["answer"], events[-1].data["stopped_reason"]) == ("", "blocked")
    assert events[-1].data["detail"] == "That is a secret."


async def test_a_guardrail_warning_is_recorded_and_the_run_continues(agent):
    rule = Pattern(
        pattern="ignore", stage="input", action=GuardrailAction.WARN, name="override"
    )
    events = await events_of(
        agent(Says(answer="No."), guardrails=Guardrails(blocked_patterns=[rule])),
        "ignore everything",
    )

    warning = next(e for e in events if e.type == "guardrail")
    assert (warning.data["action"], warning.data["details"]["rule"]) == ("warn", "override")
    assert events[-1].data["stopped_reason"] == "completed"


async def test_an_unreachable_model_ends_the_run_with_an_error_message(agent):
    events = await events_of(agent(AgentConnectionError("No one answers at model:1.")))

    error, finished = events[-2:]
    assert error.data["message"] == "No one answers at model:1."
    assert (finished.data["stopped_reason"], finished.data["detail"]) == (
        "error",
        "No one answers at model:1.",
    )
    assert finished.data["advice"]


async def test_an_empty_reply_is_a_failure_and_not_an_empty_answer(agent):
    result = await agent(Says()).run("?")

    assert (result.stopped_reason, result.answer) == ("error", "")


async def test_the_next_question_continues_the_conversation(agent):
    state = AgentState()
    runtime = agent(Says(answer="Blue."), Says(answer="Yes, blue."))
    await runtime.run("Which colour?", state)

    await runtime.run("Sure?", state)

    asked = json.dumps(runtime.planner.llm.requests[1]["messages"])
    assert "Which colour?" in asked
    assert "Blue." in asked
    assert asked.count("Sure?") == 1


async def test_a_run_cancelled_during_a_tool_call_leaves_a_valid_history(agent):
    entered = asyncio.Event()

    async def hang(_):
        entered.set()
        await asyncio.Event().wait()

    state = AgentState()
    runtime = agent(Says.call("echo", text="x"), tools=[Echo(does=hang)])
    task = asyncio.create_task(runtime.run("?", state))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    roles = [message["role"] for message in state.get_messages()]
    assert roles == ["user", "assistant", "tool"]
    assert "interrupted" in state.get_messages()[-1]["content"]


async def test_the_cost_of_a_run_is_added_up(agent):
    events = await events_of(
        agent(Says.call("echo", text="x"), Says(answer="x"), tools=[Echo()])
    )

    used = [e.data["total_tokens"] for e in events if e.type == "usage"]
    assert len(used) == 2
    assert events[-1].data["usage"]["total_tokens"] == sum(used) > 0


async def test_messages_trimmed_from_the_request_are_reported(agent):
    state = AgentState()
    for n in range(5):
        state.add_message("user", f"{n} " + "word " * 200)
        state.add_message("assistant", "word " * 200)
    runtime = agent(Says(answer="Yes."))
    runtime.planner.window = 1_200

    events = await events_of(runtime, "Still there?", state)

    status = next(e for e in events if e.type == "status")
    assert (status.data["kind"], status.data["dropped"]) == ("compaction", 8)
    assert "Still there?" in json.dumps(runtime.planner.llm.requests[0]["messages"])


AGAIN = RetryPolicy(max_retries=2, pause=0)


async def test_a_model_that_fails_before_its_first_token_is_retried(agent):
    script = [AgentConnectionError("Refused."), RateLimited("Wait."), Says(answer="Here.")]
    events = await events_of(agent(*script, retry=AGAIN))

    told = [e.data for e in events if e.type == "status"]
    assert [(t["kind"], t["message"], t["attempt"]) for t in told] == [
        ("retry", "Refused.", 2),
        ("retry", "Wait.", 3),
    ]
    assert events[-1].data["answer"] == "Here."


async def test_a_failing_model_is_tried_three_times(agent):
    runtime = agent(*[AgentConnectionError("Refused.")] * 3, retry=AGAIN)

    result = await runtime.run("?")

    assert result.stopped_reason == "error"
    assert len(runtime.planner.llm.requests) == 3


async def test_a_permanent_failure_is_not_retried(agent):
    runtime = agent(ModelError("Wrong key."), retry=AGAIN)

    assert (await runtime.run("?")).stopped_reason == "error"
    assert len(runtime.planner.llm.requests) == 1


async def test_a_run_over_its_token_budget_stops_and_names_the_limit(agent):
    policy = standard_policy(max_tokens=1)
    events = await events_of(agent(Says.call("echo", text="x"), tools=[Echo()], policy=policy))

    assert events[-1].data["stopped_reason"] == "budget_exceeded"
    assert events[-1].data["detail"] == "The run reached its token limit (1 tokens)."


class Silent:
    """A model that streams one word and then hangs."""

    def __init__(self):
        self.is_waiting = asyncio.Event()

    async def stream(self, **request):
        yield delta(content="Well, ")
        self.is_waiting.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("discretion", [None, Pseudonymizer()])
async def test_a_chunk_passes_at_most_seven_generators(discretion):
    model = Silent()
    planner = ReActPlanner(model, "silent", pseudonymizer=discretion)
    rules = Guardrails(blocked_patterns=[Pattern(pattern="swordfish")])
    runtime = AgentRuntime(planner, ToolRegistry(), rules, FallbackStrategy())

    reading = asyncio.create_task(events_of(runtime))
    await model.is_waiting.wait()
    await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await reading

    code = [frame.f_code for frame, _ in walk_tb(cancelled.value.__traceback__)]
    passed = {c.co_qualname for c in code if c.co_flags & CO_ASYNC_GENERATOR}
    assert passed >= {"RunLoop.events", "ModelCall.stream_screened", "batched"}
    assert len(passed) <= 7, passed
