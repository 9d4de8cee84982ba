"""Older turns of a long chat become a summary, or are left out."""

import json

from agents.engine.errors import AgentConnectionError
from agents.engine.history_summary import is_summary, summary_messages
from agents.engine.loop import Compaction
from agents.engine.state import AgentState
from agents.engine.testing import Says
from tests.engine.conftest import Echo
from tests.engine.loop.test_runtime import events_of

LIMITS = [Compaction(turns=4)]


def history(turns, words=1):
    state = AgentState(400)
    for n in range(turns):
        state.add_message("user", f"Question {n} " + "word " * words)
        state.add_message("assistant", f"Answer {n}")
    return state


def sent(runtime, at=-1):
    return json.dumps(runtime.planner.llm.requests[at]["messages"])


def note(events):
    return next(e.data for e in events if e.data.get("kind") == "compaction")


async def test_older_turns_are_replaced_by_a_summary(agent):
    runtime = agent(Says(answer="They asked 0 to 3."), Says(answer="Yes."), capabilities=LIMITS)
    state = history(5)

    events = await events_of(runtime, "And now?", state)

    assert "They asked 0 to 3." in sent(runtime)
    assert "Question 2" not in sent(runtime)
    assert "Question 3" in sent(runtime)
    assert (note(events)["turns"], note(events)["kept"]) == (3, 2)
    used = [e.data["total_tokens"] for e in events if e.type == "usage"]
    assert len(used) == 2
    assert events[-1].data["usage"]["total_tokens"] == sum(used)


async def test_a_short_history_costs_no_request(agent):
    runtime = agent(Says(answer="Yes."), capabilities=LIMITS)

    events = await events_of(runtime, "And now?", history(4))

    assert not [e for e in events if e.type == "status"]


async def test_a_long_history_is_summarized_by_its_tokens(agent):
    runtime = agent(
        Says(answer="Words."),
        Says(answer="Yes."),
        capabilities=[Compaction(turns=20, tokens=1_000)],
    )

    events = await events_of(runtime, "And now?", history(6, words=200))

    assert note(events)["turns"] == 5
    assert "Question 5" in sent(runtime)


async def test_without_summaries_the_oldest_turns_are_left_out(agent):
    runtime = agent(Says(answer="Yes."), capabilities=[Compaction(turns=4, summarizes=False)])

    events = await events_of(runtime, "And now?", history(6))

    assert note(events)["dropped"] == 2
    assert "Question 1" not in sent(runtime)
    assert "Question 2" in sent(runtime)


async def test_if_the_model_fails_the_oldest_turns_are_left_out(agent):
    runtime = agent(AgentConnectionError("Refused."), Says(answer="Yes."), capabilities=LIMITS)

    events = await events_of(runtime, "And now?", history(5))

    assert note(events)["message"] == "Refused."
    assert note(events)["dropped"] == 3
    assert events[-1].data["answer"] == "Yes."


async def test_a_resumed_run_keeps_the_summary(agent):
    first = agent(
        Says(answer="In short."),
        Says.call("echo", text="x"),
        tools=[Echo()],
        capabilities=LIMITS,
    )
    events = []
    async for event in first.stream("And now?", history(5)):
        events.append(event)
        if event.type == "step" and event.data["kind"] == "tool":
            break
    again = agent(Says(answer="Yes."), tools=[Echo()], capabilities=LIMITS)

    _ = [event async for event in again.resume(events, history(5))]

    assert "In short." in sent(again)
    assert "Question 2" not in sent(again)


async def test_a_new_summary_includes_the_last_one(agent):
    state = AgentState(400)
    for message in [*summary_messages("They live in Uji."), *history(5).get_messages()]:
        state.add_message(message["role"], message["content"])
    runtime = agent(Says(answer="Uji, 0 to 3."), Says(answer="Yes."), capabilities=LIMITS)

    await events_of(runtime, "And now?", state)

    assert "They live in Uji." in sent(runtime, 0)
    assert sum(is_summary(m) for m in runtime.planner.llm.requests[-1]["messages"]) == 1
