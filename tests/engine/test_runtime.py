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


async def test_a_question_without_need_of_tools_is_answered_at_once(agent):
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


async def test_events_are_numbered_without_a_hole_and_end_with_the_end(agent):
    events = await events_of(
        agent(Says.call("echo", text="hi"), Says(answer="Done."), tools=[Echo()])
    )

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[0].type == "run_started"
    assert [event.type for event in events].count("run_finished") == 1
    assert events[-1].type == "run_finished"


async def test_an_event_survives_the_way_to_a_dict_and_back(agent):
    for event in await events_of(agent(Says(answer="Done."))):
        text = json.dumps(event.to_dict())
        again = Event.from_dict(json.loads(text))
        assert again.to_dict() == event.to_dict()
        assert set(event.to_dict()) == {"time", "agent", "type", "data", "seq"}


async def test_the_answer_and_the_thought_are_streamed_apart(agent):
    runtime = agent(
        Says.call("echo", "First I ask.", text="x"), Says(answer="It is x."), tools=[Echo()]
    )
    events = await events_of(runtime)

    def said(kind):
        return "".join(e.data["content"] for e in events if e.type == kind)

    assert said("thought_delta").strip() == "First I ask."
    assert said("delta") == "It is x."


async def test_calls_of_one_turn_are_reported_in_order_each_with_its_result():
    from tests.engine.test_runtime_native import native

    two = Says("Both.", (Call("echo", {"text": "a"}), Call("echo", {"text": "b"})))
    events = await events_of(native(two, Says(answer="a, b"), tools=[Echo()]))

    told = [e.type.value for e in events if e.type.value.startswith("tool_")]
    assert told == ["tool_call", "tool_response", "tool_call", "tool_response"]
    assert [e.data["content"] for e in events if e.type == "tool_response"] == ["a", "b"]


async def test_an_unknown_tool_is_an_error_the_model_can_mend(agent):
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


async def test_a_tool_that_raises_is_tried_three_times_and_then_done_without(agent):
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


async def test_a_run_that_recovers_by_another_tool_is_completed(agent):
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


async def test_a_tool_out_of_order_is_not_offered_again(agent):
    async def fail(_):
        return ToolResult(error="out of paper")

    runtime = agent(
        Says.call("printer", text="x"), Says(answer="No."), tools=[Echo("printer", fail)]
    )
    await runtime.run("?")

    first, second = runtime.planner.llm.requests
    assert "printer" in json.dumps(first["tools"]) + first["messages"][0]["content"]
    assert not second["tools"]


async def test_an_error_in_the_input_is_told_to_the_model_and_not_tried_again(agent):
    async def refuse(_):
        return ToolResult(error="write digits", mendable=True)

    tool = Echo(does=refuse)
    result = await agent(Says.call("echo", text="x"), Says(answer="No."), tools=[tool]).run("?")

    assert len(tool.inputs) == 1
    assert result.stopped_reason == "completed"


async def test_a_hung_tool_is_given_up_after_its_time_and_only_once(agent):
    async def hang(_):
        await asyncio.Event().wait()

    tool = Echo(does=hang)
    tool.timeout = 0.05
    result = await agent(Says.call("echo", text="x"), Says(answer="No."), tools=[tool]).run("?")

    assert result.steps[0].observation == f"Error: {timeout_message('echo', 0.05)}"
    assert len(tool.inputs) == 1


async def test_fifty_megabytes_of_output_are_cut_with_a_mark(agent):
    async def flood(_):
        return ToolResult("x" * 50_000_000)

    tool = Echo(does=flood)
    result = await agent(Says.call("echo", text="x"), Says(answer="Much."), tools=[tool]).run(
        "?"
    )

    observation = result.steps[0].observation
    assert len(observation) < 201_000
    assert observation.endswith("[… 49,800,000 more characters cut]")


async def test_the_third_equal_call_ends_the_run(agent):
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


async def test_a_blocked_answer_is_never_shown_not_even_in_part(agent):
    rule = Pattern(pattern="swordfish", stage="output", message="That is a secret.")
    long = f"{'word ' * 40}swordfish {'word ' * 40}"
    events = await events_of(
        agent(Says(answer=long), guardrails=Guardrails(blocked_patterns=[rule]))
    )

    shown = "".join(e.data["content"] for e in events if e.type == "delta")
    assert "sword" not in shown
    assert (events[-1].data["answer"], events[-1].data["stopped_reason"]) == ("", "blocked")
    assert events[-1].data["detail"] == "That is a secret."


async def test_a_warning_is_recorded_and_the_run_goes_on(agent):
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


async def test_a_model_that_cannot_be_reached_ends_the_run_with_a_sentence(agent):
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


async def test_the_conversation_goes_on_where_it_was(agent):
    state = AgentState()
    runtime = agent(Says(answer="Blue."), Says(answer="Yes, blue."))
    await runtime.run("Which colour?", state)

    await runtime.run("Sure?", state)

    asked = json.dumps(runtime.planner.llm.requests[1]["messages"])
    assert "Which colour?" in asked
    assert "Blue." in asked
    assert asked.count("Sure?") == 1


async def test_a_run_cancelled_inside_a_tool_leaves_a_history_that_is_legal(agent):
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


async def test_what_did_not_fit_into_the_request_is_told(agent):
    state = AgentState()
    for n in range(5):
        state.add_message("user", f"{n} " + "word " * 200)
        state.add_message("assistant", "word " * 200)
    runtime = agent(Says(answer="Yes."))
    runtime.planner.window = 5_000

    events = await events_of(runtime, "Still there?", state)

    status = next(e for e in events if e.type == "status")
    assert (status.data["kind"], status.data["dropped"]) == ("compaction", 8)
    assert "Still there?" in json.dumps(runtime.planner.llm.requests[0]["messages"])


AGAIN = RetryPolicy(max_retries=2, pause=0)


async def test_a_model_that_fails_before_its_first_word_is_asked_again(agent):
    script = [AgentConnectionError("Refused."), RateLimited("Wait."), Says(answer="Here.")]
    events = await events_of(agent(*script, retry=AGAIN))

    told = [e.data for e in events if e.type == "status"]
    assert [(t["kind"], t["message"], t["attempt"]) for t in told] == [
        ("retry", "Refused.", 2),
        ("retry", "Wait.", 3),
    ]
    assert events[-1].data["answer"] == "Here."


async def test_a_model_that_keeps_failing_is_given_up_after_three_attempts(agent):
    runtime = agent(*[AgentConnectionError("Refused.")] * 3, retry=AGAIN)

    result = await runtime.run("?")

    assert result.stopped_reason == "error"
    assert len(runtime.planner.llm.requests) == 3


async def test_a_failure_that_will_not_pass_is_not_tried_again(agent):
    runtime = agent(ModelError("Wrong key."), retry=AGAIN)

    assert (await runtime.run("?")).stopped_reason == "error"
    assert len(runtime.planner.llm.requests) == 1


async def test_a_run_that_has_spent_its_tokens_stops_with_the_limit_in_words(agent):
    policy = standard_policy(max_tokens=1)
    events = await events_of(agent(Says.call("echo", text="x"), tools=[Echo()], policy=policy))

    assert events[-1].data["stopped_reason"] == "budget_exceeded"
    assert events[-1].data["detail"] == "The run reached its token limit (1 tokens)."


class Silent:
    """A model that says one word, and then nothing more."""

    def __init__(self):
        self.is_waiting = asyncio.Event()

    async def stream(self, **request):
        yield delta(content="Well, ")
        self.is_waiting.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("discretion", [None, Pseudonymizer()])
async def test_from_a_chunk_to_the_event_there_are_seven_generators_at_most(discretion):
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
