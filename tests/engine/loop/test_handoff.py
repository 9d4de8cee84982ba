"""Handoffs: another agent as a tool, as part of the calling step."""

import pytest

from agents.engine import ModelError
from agents.engine.events import EventType
from agents.engine.loop.handoff import Handoff
from agents.engine.plans.definition.plan import ExecutionStep
from agents.engine.testing import Says
from tests.engine.conftest import Echo
from tests.engine.loop.test_approval import Asks, collect_events, types, with_decision
from tests.engine.plans.plans import workflow

ASK = Says.call("ask_helper", task="Find it.")
DONE = Says(answer="It is found.")


@pytest.fixture
def pair(agent):
    """Build an agent that hands off to a helper, each with its own script."""

    def build(script, helpers, tools=(), **options):
        helper = agent(*helpers, tools=list(tools), name="helper", **options)
        return agent(*script, tools=[Handoff("helper", lambda: helper, "Finds.")], name="lead")

    return build


async def test_a_handoff_returns_the_answer(pair):
    lead = pair([ASK, DONE], [Says(answer="Under the stone.")])

    events = await collect_events(lead.stream("Where is it?"))

    told = lead.planner.llm.requests[1]["messages"][-1]["content"]
    assert "Under the stone." in told
    assert events[-1].type is EventType.RUN_FINISHED
    assert events[-1].data["answer"] == "It is found."
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_sub_agent_events_have_its_name_and_parent_step(pair):
    lead = pair([ASK, DONE], [Says.call("echo", text="x"), Says(answer="x")], [Echo()])

    events = await collect_events(lead.stream("Where is it?"))

    asked = next(e for e in events if e.type is EventType.TOOL_CALL)
    nested = [event for event in events if "parent" in event.data]
    assert {event.agent for event in nested} == {"helper"}
    assert {event.data["parent"] for event in nested} == {asked.data["step"]}
    assert types(nested)[0] == "handoff"
    assert types(nested)[-1] == "handoff_return"
    assert {e.agent for e in events if "parent" not in e.data} == {"lead"}
    steps = [
        e.data["step"]
        for e in events
        if e.type in {EventType.STEP_STARTED, EventType.TOOL_CALL}
    ]
    assert steps == [1, 2, 3, 4, 5, 6]


async def test_a_sub_agent_does_not_get_the_conversation(pair):
    lead = pair([ASK, DONE], [Says(answer="x")])

    await collect_events(lead.stream("Where is my secret?"))

    helper = lead.tools.get("ask_helper").sub_agent()
    assert "secret" not in str(helper.planner.llm.requests)
    assert "Find it." in str(helper.planner.llm.requests)


async def test_sub_agent_usage_counts_for_the_run(pair):
    lead = pair([ASK, DONE], [Says(answer="x")])

    events = await collect_events(lead.stream("Where?"))

    turns = [event.data["total_tokens"] for event in events if event.type is EventType.USAGE]
    assert len(turns) == 3
    assert events[-1].data["usage"]["total_tokens"] == sum(turns)


async def test_a_failed_sub_agent_is_a_tool_error_for_the_caller(pair):
    lead = pair([ASK, DONE], [ModelError("The provider refused.")])

    result = await lead.run("Where?")

    assert "helper couldn't finish: The provider refused." in result.steps[0].observation
    assert result.stopped_reason == "completed"


async def test_handoff_loops_are_rejected(agent):
    lead = agent(ASK, DONE, tools=[Handoff("helper", lambda: helper)], name="lead")
    back = Says.call("ask_lead", task="You do it.")
    helper = agent(
        back, Says(answer="Alone."), tools=[Handoff("lead", lambda: lead)], name="helper"
    )

    events = await collect_events(lead.stream("Where?"))

    said = [event.data["content"] for event in events if event.type is EventType.TOOL_RESPONSE]
    assert "This handoff would loop: lead → helper → lead." in said[0]
    assert said[1] == "Alone."


async def test_a_workflow_can_call_an_agent_with_the_same_name(agent):
    ask_other, ask_back = (Says.call(f"ask_{name}", task="You.") for name in ("helper", "flow"))
    end = Says(answer="Done.")
    named = agent(ask_other, end, tools=[Handoff("helper", lambda: helper)], name="flow")
    helper = agent(ask_back, end, tools=[Handoff("flow", lambda: named)], name="helper")
    asks = ExecutionStep(name="a", agent="flow", arguments={"task": "Go."})
    flow = workflow(asks, tools=[Handoff("flow", lambda: named, is_first=True)])

    events = await collect_events(flow.stream("Go."))

    said = [event.data["content"] for event in events if event.type is EventType.TOOL_RESPONSE]
    assert "This handoff would loop: flow → helper → flow." in said[0]
    assert said[1:] == ["Done.", "Done."]
    assert events[-1].data["stopped_reason"] == "completed"


async def test_the_handoff_depth_is_limited(agent):
    agents = {}

    def ask(name):
        return Says.call(f"ask_{name}", task="You."), Handoff(name, lambda: agents[name])

    end = Says(answer="Done.")
    for name, other in zip("abcd", "bcde", strict=True):
        says, handoff = ask(other)
        agents[name] = agent(says, end, tools=[handoff], name=name)

    events = await collect_events(agents["a"].stream("Go"))

    said = [event.data["content"] for event in events if event.type is EventType.TOOL_RESPONSE]
    assert "Handoffs can be up to 3 levels deep." in said[0]
    assert said[1:] == ["Done.", "Done.", "Done."]


async def test_a_sub_agent_that_needs_approval_pauses_the_run(agent):
    tool = Asks()

    def lead(*scripts, helpers=()):
        helper = agent(*helpers, tools=[tool], name="helper")
        return agent(*scripts, tools=[Handoff("helper", lambda: helper)], name="lead")

    paused = await collect_events(
        lead(ASK, helpers=[Says.call("echo", text="x")]).stream("Where?")
    )
    more = await collect_events(
        lead(DONE, helpers=[Says(answer="Here.")]).resume(with_decision(paused))
    )

    assert types(paused)[-2:] == ["approval_requested", "run_paused"]
    assert tool.inputs == [{"text": "x"}]
    assert [event.data["name"] for event in more if event.type is EventType.TOOL_RESPONSE] == [
        "echo",
        "ask_helper",
    ]
    assert "tool_call" not in [e.type for e in more if e.data.get("name") == "ask_helper"]
    assert more[-1].data["answer"] == "It is found."


async def test_a_sub_agent_is_called_like_a_tool(pair):
    lead = pair([], [Says(answer="Here.")])

    result = await lead.tools.get("ask_helper").execute({"task": "Find it."})

    assert result.output == "Here."
