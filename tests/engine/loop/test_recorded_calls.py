"""Runs on recorded tool results: what is answered, and where a run diverges."""

import pytest

from agents.engine import (
    ReActPlanner,
)
from agents.engine.errors import RunCancelled
from agents.engine.events import EventType
from agents.engine.loop import (
    Handoff,
    MadeCall,
    RecordedCall,
    RecordedCalls,
    RecordedTool,
    call_key,
    first_divergence,
)
from agents.engine.testing import Call, Says, ScriptedModel
from tests.engine.conftest import make_runtime as build_runtime

SPEC = {
    "function": {
        "name": "database",
        "description": "Query.",
        "parameters": {"type": "object", "properties": {"sql": {"type": "string"}}},
    }
}


def make_runtime(*script, tools, name="agent"):
    model = ScriptedModel(*script)
    return build_runtime(ReActPlanner(model, "scripted"), tools, name=name), model


def recorded(*queries):
    """Return recordings of (query, observation)."""
    rows = [
        RecordedCall(tool="database", arguments={"sql": sql}, observation=found)
        for sql, found in queries
    ]
    return RecordedCalls(rows)


async def play(calls, *script):
    """Return the events up to the end or the divergence, the model and the error."""
    runtime, model = make_runtime(*script, tools=[RecordedTool(calls, SPEC)])
    events, error = [], None
    try:
        async for event in calls.until_divergence(runtime.stream("Why?")):
            events.append(event)
    except RunCancelled as stopped:
        error = stopped
    return events, model, error


def ask(sql):
    return Says.call("database", sql=sql)


async def test_the_same_call_gets_the_recorded_observation():
    calls = recorded(("SELECT 1", "one"))

    events, model, error = await play(calls, ask("SELECT 1"), Says(answer="One."))

    assert error is None
    assert events[-1].data["answer"] == "One."
    assert model.requests[1]["messages"][-1]["content"] == "one"


async def test_a_call_with_other_arguments_stops_the_run_there():
    calls = recorded(("SELECT 1", "one"))

    events, model, error = await play(calls, ask("SELECT 2"), Says(answer="Two."))

    assert str(error) == "Stopped at a call that wasn't recorded: database: SELECT 2"
    assert len(model.requests) == 1
    assert events[-1].type is EventType.TOOL_CALL


async def test_repeated_calls_get_different_observations_in_order():
    calls = recorded(("SELECT now()", "10:00"), ("SELECT now()", "10:01"))
    again = ask("SELECT now()")

    _events, model, error = await play(calls, again, again, Says(answer="Later."))

    contents = [request["messages"][-1]["content"] for request in model.requests[1:]]
    assert (contents, error) == (["10:00", "10:01"], None)


async def test_an_interrupted_run_continues_with_the_next_observation():
    before = recorded(("SELECT now()", "10:00"), ("SELECT now()", "10:01"))
    events, _model, _error = await play(before, ask("SELECT now()"), Says(answer="x"))
    after = recorded(("SELECT now()", "10:00"), ("SELECT now()", "10:01"))

    after.resume(events)

    assert after.answer("database", {"sql": "SELECT now()"}).output == "10:01"


async def test_a_recorded_error_is_an_error_again():
    row = RecordedCall(
        tool="database", arguments={"sql": "x"}, observation="Error: no table x", is_error=True
    )

    _events, model, _error = await play(RecordedCalls([row]), ask("x"), Says(answer="No."))

    assert model.requests[1]["messages"][-1]["content"] == "Error: no table x"


async def test_a_handoff_runs_again_with_recorded_tools():
    calls = recorded(("SELECT 1", "one"))
    helper, _model = make_runtime(
        ask("SELECT 2"), Says(answer="Two."), tools=[RecordedTool(calls, SPEC)], name="helper"
    )
    lead, _ = make_runtime(
        Says.call("ask_helper", task="Look."), tools=[Handoff("helper", lambda: helper, "")]
    )

    with pytest.raises(RunCancelled, match="SELECT 2"):
        async for _event in calls.until_divergence(lead.stream("Why?")):
            pass


def test_order_null_values_and_outer_spaces_dont_make_another_call():
    one = call_key("t", {"a": 1.0, "b": " x ", "c": None})

    assert one == call_key("t", {"b": "x", "a": 1})
    assert one != call_key("t", {"b": "y", "a": 1})


def calls_of(*names):
    return [MadeCall(tool="t", arguments={"q": name}) for name in names]


@pytest.mark.parametrize(
    ("made", "kind", "at", "said", "instead"),
    [
        ("ab", None, 0, "", ""),
        ("ax", "not_recorded", 2, "t: x", "t: b"),
        ("abx", "not_recorded", 3, "t: x", ""),
        ("ba", "order", 1, "t: b", "t: a"),
        ("aba", "repeated", 3, "t: a", ""),
        ("a", "missing", 2, "", "t: b"),
        ("", "missing", 1, "", "t: a"),
    ],
)
def test_the_first_divergence_names_both_calls(made, kind, at, said, instead):
    found = first_divergence(calls_of(*"ab"), calls_of(*made))

    expected = None if kind is None else (kind, at, said, instead)
    assert (found and (found.kind, found.at, found.made, found.recorded)) == expected


def test_the_order_of_parallel_steps_is_no_divergence():
    assert first_divergence(calls_of(*"ab"), calls_of(*"ba"), is_ordered=False) is None


async def test_parallel_calls_in_one_turn_are_all_answered():
    calls = recorded(("a", "1"), ("b", "2"))
    both = Says("", (Call("database", {"sql": "b"}), Call("database", {"sql": "a"})))

    _events, model, error = await play(calls, both, Says(answer="Both."))

    said = [m["content"] for m in model.requests[1]["messages"] if m["role"] == "tool"]
    assert (sorted(said), error) == (["1", "2"], None)
