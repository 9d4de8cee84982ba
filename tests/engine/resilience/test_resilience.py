"""Provider failures over real HTTP, and how runs handle them."""

import pytest

from agents.engine import (
    AgentError,
    AgentState,
    FallbackStrategy,
    Guardrails,
    ReActPlanner,
    RetryPolicy,
)
from agents.engine.errors import CircuitOpen
from agents.engine.events import EventFactory
from agents.engine.loop.model_calls.model_call import ModelCall
from agents.engine.resilience.circuit_breaker import Circuits
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.wire.provider_errors import ANSWER_CUT_OFF, KEY_REJECTED
from tests.engine.conftest import Echo, make_runtime
from tests.engine.resilience.test_circuit_breaker import Clock
from tests.wire import WireServer, call, closed_port, cut, fail, say

# Imports LiteLLM, which takes seconds.
pytestmark = pytest.mark.slow

KEY = "sk-own-secret-123456"
AGAIN = RetryPolicy(max_retries=2, pause=0)


def planner(url, name="openai/wire"):
    return ReActPlanner(LiteLLMModel(api_key=KEY, base_url=url), name)


def ask(planner):
    return planner.request("What?", AgentState(), [])


def model_call(first, *others, circuits=None):
    fallback = FallbackStrategy(retry=AGAIN, circuits=circuits)
    return ModelCall([first, *others], Guardrails(), fallback, EventFactory("agent"), 1)


async def collect(heard, events=None):
    events = [] if events is None else events
    async for event in heard.events(ask(heard.planner), ask):
        events.append(event)
    return events


@pytest.mark.thorough
async def test_a_failing_provider_is_replaced_by_the_fallback():
    async with WireServer([fail(503, "overloaded")] * 3) as a, WireServer([say("Here.")]) as b:
        events = await collect(model_call(planner(a.url), planner(b.url, "openai/other")))

    status = [e.data for e in events if e.type == "status"][-1]
    assert (status["from"], status["to"]) == ("openai/wire", "openai/other")
    assert "HTTP 503" in status["message"]
    assert "".join(e.data["content"] for e in events if e.type == "delta") == "Here."
    assert len(a.requests) == 3


async def test_events_and_errors_do_not_contain_the_key():
    reply = fail(401, f"Incorrect API key provided: {KEY}")
    async with WireServer([reply] * 2) as server:
        heard = model_call(planner(server.url), planner(server.url, "openai/other"))
        events = []
        with pytest.raises(AgentError) as caught:
            await collect(heard, events)

    refusal = "Incorrect API key provided: ***"
    said = [event.data["message"] for event in events if "message" in event.data]
    assert said[0] == KEY_REJECTED.fill("openai/wire", refusal)
    assert "own-secret" not in f"{[e.data for e in events]} {caught.value}"
    assert str(caught.value).endswith("Models tried: openai/wire, openai/other.")


async def test_a_server_that_is_down_is_skipped_until_a_trial_succeeds():
    clock, port = Clock(), closed_port()
    circuits = Circuits(clock=clock)
    down = planner(f"http://127.0.0.1:{port}/v1")
    for _ in range(2):
        with pytest.raises(AgentError, match="Models tried"):
            await collect(model_call(down, circuits=circuits))

    async with WireServer([say("Back.")], port=port) as server:
        with pytest.raises(CircuitOpen):
            await collect(model_call(down, circuits=circuits))
        assert server.requests == []
        clock.now += 31
        await collect(model_call(down, circuits=circuits))

    assert len(server.requests) == 1
    assert {state.state for state in circuits.state()} == {"closed"}


async def test_an_interrupted_answer_keeps_its_steps_text_and_reason():
    script = [call(("echo", '{"text": "hi"}')), cut(say("one two three", chunks=3), after=2)]
    async with WireServer(script) as server:
        agent = make_runtime(planner(server.url), [Echo()], retry=AGAIN)
        state = AgentState()
        events = [event async for event in agent.stream("?", state)]

    error, finished = events[-2:]
    assert [step.observation for step in state.get_steps()] == ["hi"]
    assert "one two three".startswith(finished.data["answer"])
    assert finished.data["answer"]
    assert error.data["message"] == ANSWER_CUT_OFF.fill(model=repr("openai/wire"))
    assert finished.data["advice"] == "Try again, or choose another model."
