"""Runs whose models or tools are replaced by fallbacks."""

from agents.engine import (
    ProviderFailed,
    ReActPlanner,
)
from agents.engine.events import EventFactory, EventType
from agents.engine.resilience.circuit_breaker import CircuitPolicy, Circuits
from agents.engine.testing import Says, ScriptedModel
from tests.engine.conftest import Echo, make_runtime
from tests.engine.loop.test_tool_runner import archive, broken_tool


def planner(name, *script, dialect="native"):
    return ReActPlanner(ScriptedModel(*script, dialect=dialect), name, dialect=dialect)


def runtime(first, *others, tools=(), **options):
    return make_runtime([first, *others], tools, **options)


async def events_of(agent):
    return [event async for event in agent.stream("?")]


def statuses(events, kind):
    return [e.data for e in events if e.type == "status" and e.data["kind"] == kind]


async def test_the_run_stays_with_the_fallback_model_that_worked():
    a = planner("a", ProviderFailed("Overloaded."))
    b = planner("b", Says.call("echo", text="x"), Says(answer="x"))

    events = await events_of(runtime(a, b, tools=[Echo()]))

    assert events[-1].data["answer"] == "x"
    assert len(statuses(events, "model_fallback")) == 1
    assert [e.data["model"] for e in events if e.type == "usage"] == ["b", "b"]
    assert len(a.llm.requests) == 1


async def test_a_fallback_model_of_another_dialect_takes_over_mid_run():
    a = planner("a", Says.call("echo", text="x"), ProviderFailed("Overloaded."))
    b = planner("b", Says.call("echo", text="y"), Says(answer="x y"), dialect="react")

    result = await runtime(a, b, tools=[Echo()]).run("?")

    assert (result.answer, [step.observation for step in result.steps[:2]]) == (
        "x y",
        ["x", "y"],
    )
    assert "Observation: x" in b.llm.requests[0]["messages"][-1]["content"]


async def test_a_run_resumed_after_approval_uses_the_same_model():
    tool = Echo()
    tool.needs_approval = True
    a = planner("a", ProviderFailed("Overloaded."))
    b = planner("b", Says.call("echo", text="x"), Says(answer="x"))
    agent = runtime(a, b, tools=[tool])
    past = await events_of(agent)
    asked = next(e for e in past if e.type == "approval_requested")
    verdict = {"is_approved": True, "arguments": None, "reason": ""}
    said = EventFactory("agent", past[-1].seq)(
        EventType.APPROVAL_RESOLVED, id=asked.data["id"], step=asked.data["step"], **verdict
    )

    events = [event async for event in agent.resume([*past, said])]

    assert events[-1].data["answer"] == "x"
    assert len(a.llm.requests) == 1


async def test_a_replaced_tool_is_reported_and_the_run_completes():
    a = planner("a", Says.call("search", text="tea"), Says(answer="Tea."))

    events = await events_of(runtime(a, tools=[broken_tool(), archive()]))

    (status,) = statuses(events, "tool_fallback")
    assert (status["tool"], status["stand_in"]) == ("search", "archive")
    assert "the wire is cut" in status["message"]
    assert events[-1].data["stopped_reason"] == "completed"


async def test_a_run_with_a_failed_tool_is_marked_degraded():
    circuits, tool = Circuits(CircuitPolicy(failures=1)), broken_tool(stand_in="")
    for _ in range(2):
        model = planner("a", Says.call("search", text="tea"), Says(answer="No idea."))
        result = await runtime(model, tools=[tool], circuits=circuits).run("?")

    assert len(tool.inputs) == 3
    assert result.stopped_reason == "tool_failure_degraded"
    assert "has failed 1 times in a row" in result.steps[0].observation
