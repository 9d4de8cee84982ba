"""Runs with native tool calls, and their errors."""

import asyncio

import pytest

from agents.engine import (
    AgentConnectionError,
    ReActPlanner,
    RetryPolicy,
    ToolResult,
)
from agents.engine.planner.stream_batches import Deadlines
from agents.engine.testing import Call, Says, ScriptedModel, delta, finish
from tests.engine.conftest import Echo, make_runtime


class Chunks:
    """A model that sends exactly these chunks, one list per turn."""

    def __init__(self, *turns):
        self.turns = list(turns)
        self.closed = 0

    async def stream(self, **request):
        try:
            for chunk in self.turns.pop(0):
                if chunk is None:
                    await asyncio.Event().wait()
                yield chunk
        finally:
            self.closed += 1


def runtime(llm, tools=(), **options):
    return make_runtime(ReActPlanner(llm, "scripted", **options), tools)


def native(*script, tools=()):
    return runtime(ScriptedModel(*script), tools)


def call(arguments, id="c0", name="echo"):
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": 0, "id": id, "function": function}])


async def test_text_before_a_tool_call_becomes_a_thought():
    turns = [delta(content="Let me look."), call('{"text": "x"}'), finish("tool_calls")]
    agent = runtime(Chunks(turns, [delta(content="x"), finish("stop")]), [Echo()])

    events = [event async for event in agent.stream("?")]

    kinds = [e.type.value for e in events if e.type.value in {"delta", "thought"}]
    assert kinds == ["delta", "thought", "delta"]
    assert events[-1].data["answer"] == "x"


async def test_a_wrong_stop_reason_does_not_end_the_run_early():
    """Gemini says STOP with function calls."""
    turns = [[call('{"text": "x"}'), finish("stop")], [delta(content="x"), finish("stop")]]

    result = await runtime(Chunks(*turns), [Echo()]).run("?")

    assert (result.answer, result.tool_calls) == ("x", 1)


async def test_a_truncated_call_is_never_run():
    tool = Echo()
    agent = runtime(Chunks([call('{"text": "delete fr'), finish("length")]), [tool])

    result = await agent.run("?")

    assert (result.stopped_reason, tool.inputs) == ("error", [])


async def test_invalid_json_arguments_are_returned_as_an_error_and_not_saved():
    tool = Echo()
    turns = [
        [call('{"text": '), finish("tool_calls")],
        [delta(content="Sorry."), finish("stop")],
    ]
    agent = runtime(Chunks(*turns), [tool])

    events = [event async for event in agent.stream("?")]

    response = next(e for e in events if e.type == "tool_response")
    assert response.data["is_error"]
    assert "aren't a JSON object" in response.data["content"]
    assert tool.inputs == []
    request = [e for e in events if e.type == "step_started"][1].data["request"]
    assert request["messages"][0]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_arguments_that_are_no_json_are_asked_for_once_more():
    turns = [[call('{"text": '), finish("tool_calls")]] * 2
    agent = runtime(Chunks(*turns, [delta(content="Sorry."), finish("stop")]), [Echo()])

    events = [event async for event in agent.stream("?")]

    requests = [e.data["request"] for e in events if "request" in e.data]
    assert [request["tools"] for request in requests] == [["echo"], ["echo"], []]
    assert events[-1].data["answer"] == "Sorry."


async def test_repeated_call_ids_in_two_turns_are_kept_apart():
    turns = [[call(f'{{"text": "{n}"}}', id="same"), finish("tool_calls")] for n in (1, 2)]
    agent = runtime(Chunks(*turns, [delta(content="2"), finish("stop")]), [Echo()])

    events = [event async for event in agent.stream("?")]

    ids = [e.data["id"] for e in events if e.type == "tool_call"]
    assert len(set(ids)) == 2


async def test_a_model_that_never_starts_times_out_with_a_message():
    llm = Chunks([None])
    result_of = runtime(llm, deadlines=Deadlines(first=0.05)).stream("?")

    events = [event async for event in result_of]

    assert events[-2].data["type"] == "ModelTimeout"
    assert events[-1].data["detail"] == "The model sent nothing for 0.05 s."
    assert llm.closed == 1


async def test_a_slow_model_is_reported_once_and_waited_for():
    slow = Deadlines(slow=0.02, first=0.1)
    events = [event async for event in runtime(Chunks([None]), deadlines=slow).stream("?")]

    told = [event.data for event in events if event.type == "status"]
    assert told == [{"kind": "slow", "seconds": 0.02, "step": 1}]
    assert events[-1].data["detail"] == "The model sent nothing for 0.1 s."


async def test_a_model_that_stalls_mid_stream_times_out_and_keeps_its_text():
    llm = Chunks([delta(content="Half an"), None])
    agent = runtime(llm, deadlines=Deadlines(slow=0.05, between=0.05))

    events = [event async for event in agent.stream("?")]

    assert "".join(e.data["content"] for e in events if e.type == "delta") == "Half an"
    assert events[-1].data["stopped_reason"] == "error"


async def test_tokens_that_arrive_together_are_one_event():
    turns = [*(delta(content=f"{n} ") for n in range(500)), finish("stop")]
    agent = runtime(Chunks(turns), batch_seconds=0.01)

    events = [event async for event in agent.stream("?")]

    deltas = [e for e in events if e.type == "delta"]
    assert len(deltas) < 10
    assert events[-1].data["answer"].startswith("0 1 2 ")


async def test_stopping_closes_the_models_stream():
    llm = Chunks([delta(content="I say"), None])
    events = runtime(llm).stream("?")
    async for event in events:
        if event.type == "delta":
            break

    await events.aclose()

    assert llm.closed == 1


async def test_a_model_that_invents_observations_is_cut_short():
    text = 'Thought: x\nAction: echo\nAction Input: {"text": "x"}\nObservation: made up\n'
    turns = [[delta(content=text), *(delta(content="more ") for _ in range(9))]]
    answer = [delta(content="Final Answer: x"), finish("stop")]
    agent = runtime(Chunks(*turns, answer), [Echo()], dialect="react")

    result = await agent.run("?")

    assert (result.answer, result.steps[0].observation) == ("x", "x")


async def test_an_unparsable_reply_is_sent_back_to_be_fixed():
    script = [delta(content="Thought: hmm"), finish("stop")]
    answer = [delta(content="Final Answer: x"), finish("stop")]
    llm = Chunks(script, answer)

    result = await runtime(llm, [Echo()], dialect="react").run("?")

    assert (result.answer, result.stopped_reason) == ("x", "completed")


async def test_two_duplicate_calls_in_one_turn_are_allowed_but_not_three():
    thrice = Says("", tuple(Call("echo", {"text": "x"}) for _ in range(3)))

    result = await native(thrice, tools=[Echo()]).run("?")

    assert (result.stopped_reason, result.tool_calls) == ("duplicate_tool_call", 0)


async def test_read_only_calls_run_in_parallel_and_are_reported_in_order():
    waiting = asyncio.Barrier(3)

    async def meet(input):
        await waiting.wait()
        return ToolResult(input["text"])

    tool = Echo(does=meet)
    tool.effect = "read"
    calls = tuple(Call("echo", {"text": text}) for text in "abc")
    agent = native(Says("", calls), Says(answer="abc"), tools=[tool])

    async with asyncio.timeout(5):
        events = [event async for event in agent.stream("?")]

    told = [(e.type.value, e.data["step"]) for e in events if e.type.value.startswith("tool_")]
    assert told == [(kind, n) for n in (2, 3, 4) for kind in ("tool_call", "tool_response")]
    assert [e.data["content"] for e in events if e.type == "tool_response"] == ["a", "b", "c"]


@pytest.mark.parametrize("effect", ["idempotent", "at_most_once"])
async def test_calls_with_side_effects_run_one_after_another(effect):
    tool, alone = Echo(), []

    async def does(input):
        alone.append(len(tool.inputs))
        await asyncio.sleep(0)
        return ToolResult(input["text"])

    tool.does, tool.effect = does, effect
    calls = tuple(Call("echo", {"text": text}) for text in "abc")

    await native(Says("", calls), Says(answer="abc"), tools=[tool]).run("?")

    assert alone == [1, 2, 3]


async def test_stopping_cancels_all_running_calls():
    ended = []

    async def hang(input):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(input["text"])

    tool = Echo(does=hang)
    tool.effect = "read"
    calls = tuple(Call("echo", {"text": text}) for text in "abc")
    events = native(Says("", calls), tools=[tool]).stream("?")
    async for event in events:
        if event.type == "tool_call":
            break

    await asyncio.sleep(0)
    await events.aclose()

    assert sorted(ended) == ["a", "b", "c"]


async def test_a_model_that_has_started_streaming_is_not_retried():
    class Cut(Chunks):
        async def stream(self, **request):
            yield delta(content="Half an")
            raise AgentConnectionError("It was cut off.")

    agent = runtime(Cut())
    agent.retry = RetryPolicy(max_retries=5, pause=0)

    result = await agent.run("?")

    assert (result.answer, result.stopped_reason) == ("Half an", "error")


async def test_arguments_nested_too_deeply_are_returned_as_an_error():
    deep = '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}"
    turns = [[call(deep), finish("tool_calls")], [delta(content="Sorry."), finish("stop")]]

    result = await runtime(Chunks(*turns), [Echo()]).run("?")

    assert "nested too deeply" in result.steps[0].observation
    assert result.answer == "Sorry."


async def test_an_answer_truncated_at_the_token_limit_has_a_caveat():
    turn = [delta(content="The reasons are: 1. the"), finish("length")]

    events = [event async for event in runtime(Chunks(turn)).stream("?")]

    assert events[-1].data["stopped_reason"] == "completed"
    assert "cut off" in events[-1].data["detail"]


async def test_an_unreadable_reply_is_sent_to_the_model_but_not_to_the_user():
    bad = [delta(content="Let me see.\nAction:\n"), finish("stop")]
    good = [delta(content="Final Answer: 42"), finish("stop")]
    agent = runtime(Chunks(bad, good), [Echo()], dialect="react")

    events = [event async for event in agent.stream("?")]

    kinds = [e.type.value for e in events if e.type.value in {"delta", "thought"}]
    assert kinds == ["delta", "thought", "delta"]
    second = [e for e in events if e.type == "step_started"][1].data["request"]["messages"]
    assert [m["role"] for m in second] == ["assistant", "user"]
