"""Waiting for a person is a state in the events, not a suspended coroutine."""

import json

import pytest

from agents.engine import AgentState, Event
from agents.engine.events import EventFactory, EventType
from agents.engine.loop import Approvals, Grants
from agents.engine.loop.tool_calls.approval import StandingApproval, digest
from agents.engine.testing import Call, Says
from agents.engine.turn.assembly import ToolCall
from tests.engine.conftest import Echo


class Asks(Echo):
    needs_approval = True


class Reads(Echo):
    effect = "read"


ASKS = Says.call("echo", text="hello")
THANKS = Says(answer="Thank you.")


async def collect_events(events):
    return [event async for event in events]


def types(events):
    return [event.type.value for event in events]


def with_decision(events, at=-1, **verdict):
    """Return the events with a decision about a call."""
    asked = [event for event in events if event.type is EventType.APPROVAL_REQUESTED][at]
    facts = {"is_approved": True, "arguments": None, "reason": ""} | verdict
    stamp = EventFactory(asked.agent, after=events[-1].seq)
    stamp.parent = asked.data.get("parent")
    word = stamp(
        EventType.APPROVAL_RESOLVED, id=asked.data["id"], step=asked.data["step"], **facts
    )
    return [*events, _reload_event(word)]


def _reload_event(event):
    """Return the event as loaded from a database."""
    return Event.from_dict(json.loads(json.dumps(event.to_dict())))


async def test_a_tool_that_requires_approval_is_not_called_before_it(agent):
    tool = Asks()
    runtime = agent(ASKS, tools=[tool])

    events = await collect_events(runtime.stream("Say hello"))

    asked = events[-2]
    assert types(events)[-2:] == ["approval_requested", "run_paused"]
    assert asked.data["function"]["name"] == "echo"
    assert json.loads(asked.data["function"]["arguments"]) == {"text": "hello"}
    assert asked.data["why"] == "tool"
    assert tool.inputs == []


async def test_a_paused_run_resumes_in_another_process(agent, dialect):
    tool = Asks()
    paused = await collect_events(agent(ASKS, tools=[tool]).stream("Say hello"))
    events = with_decision([_reload_event(event) for event in paused])
    later = agent(THANKS, tools=[tool])

    more = await collect_events(later.resume(events))

    assert types(more)[:3] == ["tool_call", "tool_response", "step"]
    assert more[0].data["step"] == paused[-2].data["step"]
    assert [event.seq for event in more] == list(
        range(len(events) + 1, len(events) + len(more) + 1)
    )
    assert more[-1].data["answer"] == "Thank you."
    assert more[-1].data["tool_calls"] == 1
    assert tool.inputs == [{"text": "hello"}]


async def test_the_model_request_is_the_same_with_and_without_a_pause(agent):
    past = AgentState()
    past.add_message("user", "Before?")
    past.add_message("assistant", "Yes.")
    script = [Says.call("other", text="first"), ASKS]
    straight = agent(*script, THANKS, tools=[Echo("echo"), Echo("other")])
    await collect_events(straight.stream("Go", AgentState.from_dict(past.to_dict())))
    broken = agent(*script, tools=[Asks("echo"), Echo("other")])
    paused = await collect_events(broken.stream("Go", AgentState.from_dict(past.to_dict())))
    later = agent(THANKS, tools=[Asks("echo"), Echo("other")])
    await collect_events(later.resume(with_decision(paused), past))

    expected = straight.planner.llm.requests[-1]["messages"]
    assert _without_ids(later.planner.llm.requests[-1]["messages"]) == _without_ids(expected)


async def test_a_user_can_edit_the_arguments(agent):
    tool = Asks()
    paused = await collect_events(agent(ASKS, tools=[tool]).stream("Say hello"))
    later = agent(THANKS, tools=[tool])

    more = await collect_events(
        later.resume(with_decision(paused, arguments='{"text": "bye"}'))
    )

    assert tool.inputs == [{"text": "bye"}]
    told = later.planner.llm.requests[0]["messages"][-1]["content"]
    assert "A user changed the arguments" in told
    assert json.loads(more[0].data["function"]["arguments"]) == {"text": "bye"}


async def test_a_rejected_call_is_not_made_and_the_model_gets_the_reason(agent):
    tool = Asks()
    paused = await collect_events(agent(ASKS, tools=[tool]).stream("Say hello"))
    later = agent(Says(answer="Then not."), tools=[tool])

    more = await collect_events(
        later.resume(with_decision(paused, is_approved=False, reason="Not on a Sunday."))
    )

    assert tool.inputs == []
    assert types(more)[:2] == ["tool_response", "step"]
    assert more[1].data["status"] == "rejected"
    assert "Not on a Sunday." in later.planner.llm.requests[0]["messages"][-1]["content"]
    assert more[-1].data["answer"] == "Then not."


async def test_an_agent_without_automatic_tools_requires_approval_for_each(agent):
    tool = Echo()
    runtime = agent(ASKS, tools=[tool], capabilities=[Approvals(auto_execute=False)])

    events = await collect_events(runtime.stream("Say hello"))

    assert events[-2].data["why"] == "agent"
    assert tool.inputs == []


async def test_an_invalid_call_needs_no_approval(agent):
    runtime = agent(
        Says.call("nothing"),
        THANKS,
        tools=[Asks()],
        capabilities=[Approvals(auto_execute=False)],
    )

    result = await runtime.run("Say hello")

    assert result.stopped_reason == "completed"


async def test_run_returns_that_it_is_paused(agent):
    result = await agent(ASKS, tools=[Asks()]).run("Say hello")

    assert result.stopped_reason == "waiting"
    assert result.answer == ""


@pytest.mark.parametrize("dialect", ["native"], indirect=True)
async def test_calls_without_approval_run_first_and_the_others_are_requested_together(agent):
    turn = Says(
        "All of it.",
        (
            Call("look", {"text": "1"}),
            Call("write", {"text": "2"}),
            Call("look", {"text": "3"}),
            Call("write", {"text": "4"}),
        ),
    )
    look, write = Reads("look"), Asks("write")
    paused = await collect_events(agent(turn, tools=[look, write]).stream("Go"))
    assert [
        e.data["function"]["arguments"]
        for e in paused
        if e.type is EventType.APPROVAL_REQUESTED
    ] == [
        '{"text": "2"}',
        '{"text": "4"}',
    ]
    assert look.inputs == [{"text": "1"}]

    one = with_decision(paused, at=0)
    still = await collect_events(agent(tools=[look, write]).resume(one))
    both = with_decision([*one, *still], at=1, is_approved=False)
    await collect_events(agent(THANKS, tools=[look, write]).resume(both))

    assert types(still)[-1] == "run_paused"
    assert "approval_requested" not in types(still)
    assert [i["text"] for i in look.inputs] == ["1", "3"]
    assert [i["text"] for i in write.inputs] == ["2"]


async def test_duplicate_calls_are_counted_across_a_pause(agent):
    tool = Asks()
    events = await collect_events(agent(ASKS, tools=[tool]).stream("Go"))
    for _ in range(2):
        more = await collect_events(agent(ASKS, tools=[tool]).resume(with_decision(events)))
        events = [*with_decision(events), *more]

    assert events[-1].data["stopped_reason"] == "duplicate_tool_call"
    assert len(tool.inputs) == 2


async def test_waiting_for_approval_does_not_count_as_run_time(agent, monkeypatch):
    from datetime import timedelta

    from agents.engine.loop.run_state import rebuild

    paused = await collect_events(agent(ASKS, tools=[Asks()]).stream("Go"))
    word = with_decision(paused)[-1]
    a_day_later = Event(
        type=word.type,
        data=word.data,
        agent=word.agent,
        time=word.time + timedelta(days=1),
        seq=word.seq,
    )

    trail = rebuild([*paused, a_day_later], EventFactory("agent"), AgentState())

    assert trail.progress.seconds < 3600


def standing(*answers):
    """Return a check that gives these answers in turn."""
    left, asked = list(answers), []

    async def check(tool):
        asked.append(tool.name)
        return left.pop(0)

    return check, asked


ALLOWED = StandingApproval(by=7, by_name="ada", grant=3, scope="chat")


async def test_a_tool_that_is_always_allowed_is_called_and_the_approval_recorded(agent):
    tool, (check, asked) = Asks(), standing(ALLOWED)

    events = await collect_events(
        agent(ASKS, THANKS, tools=[tool], capabilities=[Grants(check)]).stream("Go")
    )

    at = types(events).index("approval_requested")
    assert types(events)[at : at + 3] == [
        "approval_requested",
        "approval_resolved",
        "tool_call",
    ]
    resolved = events[at + 1].data
    assert (resolved["by"], resolved["by_name"]) == (7, "ada")
    assert resolved["grant"] == {"id": 3, "scope": "chat"}
    assert asked == ["echo"]
    assert tool.inputs == [{"text": "hello"}]


async def test_interrupted_between_request_and_decision_the_call_is_made_once(agent):
    tool, (check, _asked) = Asks(), standing(ALLOWED)
    whole = await collect_events(
        agent(ASKS, THANKS, tools=[tool], capabilities=[Grants(check)]).stream("Go")
    )
    cut = whole[: types(whole).index("approval_requested") + 1]
    tool, (again, _asked) = Asks(), standing(ALLOWED)

    later = agent(THANKS, tools=[tool], capabilities=[Grants(again)])
    more = await collect_events(later.resume([_reload_event(event) for event in cut]))

    assert types(more)[1:3] == ["approval_resolved", "tool_call"]
    assert tool.inputs == [{"text": "hello"}]


async def test_a_revoked_permission_leaves_the_request_pending(agent):
    (check, _), (again, _) = standing(ALLOWED), standing(None)
    whole = await collect_events(
        agent(ASKS, THANKS, tools=[Asks()], capabilities=[Grants(check)]).stream("Go")
    )
    cut = whole[: types(whole).index("approval_requested") + 1]
    tool = Asks()

    later = agent(tools=[tool], capabilities=[Grants(again)])
    more = await collect_events(later.resume([_reload_event(event) for event in cut]))

    assert types(more)[1:] == ["run_paused"]
    assert tool.inputs == []


async def test_a_call_that_needs_no_approval_uses_no_permission(agent):
    check, asked = standing()

    await collect_events(
        agent(ASKS, THANKS, tools=[Echo()], capabilities=[Grants(check)]).stream("Go")
    )

    assert asked == []


def test_an_approval_is_bound_to_the_call_the_tool_and_the_arguments():
    call = ToolCall(id="a", name="write", arguments='{"x": 1}')
    others = [
        ToolCall(id="b", name="write", arguments='{"x": 1}'),
        ToolCall(id="a", name="erase", arguments='{"x": 1}'),
        ToolCall(id="a", name="write", arguments='{"x": 2}'),
    ]

    assert digest(call) == digest(ToolCall(id="a", name="write", arguments='{"x": 1}'))
    assert len({digest(call), *map(digest, others)}) == 4
    assert digest(call, tool="as it was") != digest(call, tool="as it is")


def _without_ids(messages):
    """Number the call ids, because only their order matters."""
    made = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    names = {id: f"call {at}" for at, id in enumerate(made)}
    return [
        {
            **message,
            "tool_call_id": names.get(message.get("tool_call_id")),
            "tool_calls": [
                {**call, "id": names[call["id"]]} for call in message.get("tool_calls") or ()
            ],
        }
        for message in messages
    ]
