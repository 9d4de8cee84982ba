"""Runs with an output schema, from the question to the end."""

import json

from agents.engine import AgentState, Guardrails, RateLimited, ToolResult
from agents.engine.events import Event
from agents.engine.loop.output.output_schema import OutputSchema
from agents.engine.testing import Says
from agents.tools.search import SearchTool
from tests.engine.conftest import Echo
from tests.engine.material.test_material import find

FORM = OutputSchema(
    {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    }
)
CALL = Says.call("echo", text="hi")
WORDS = Says(answer="It is hi.")
FITS = Says(answer='{"word": "hi"}')


async def events_of(agent, state=None):
    return [event async for event in agent.stream("Which word?", state)]


async def test_the_schema_is_requested_after_the_tools(agent):
    runtime = agent(CALL, WORDS, FITS, tools=[Echo()], output=FORM)
    events = await events_of(runtime)

    requests, end = runtime.planner.llm.requests, events[-1].data
    assert ["response_format" in request for request in requests] == [False, False, True]
    assert requests[-1]["tools"] is None
    assert (end["output"], end["answer"]) == ({"word": "hi"}, "- **word:** hi")
    assert (end["stopped_reason"], end["turns"], end["tool_calls"]) == ("completed", 2, 1)
    assert [(e.data["kind"], e.data["status"]) for e in events if e.type == "step"] == [
        ("thought", "done"),
        ("tool", "done"),
        ("thought", "done"),
        ("answer", "done"),
    ]


async def test_text_of_the_first_phase_is_a_thought_not_the_answer(agent):
    events = await events_of(agent(WORDS, FITS, tools=[Echo()], output=FORM))

    assert "delta" not in [event.type for event in events]
    assert [e.data["content"] for e in events if e.type == "thought"] == ["It is hi."]
    assert next(e.data["thought"] for e in events if e.type == "step") == "It is hi."


async def test_without_tools_the_schema_is_sent_at_once(agent):
    runtime = agent(FITS, output=FORM)
    events = await events_of(runtime)

    assert "response_format" in runtime.planner.llm.requests[0]
    assert (events[-1].data["output"], events[-1].data["turns"]) == ({"word": "hi"}, 1)


async def test_a_run_at_its_step_limit_still_returns_a_structured_answer(agent):
    script = [WORDS, Says(answer="{}"), FITS]
    events = await events_of(agent(*script, tools=[Echo()], output=FORM, max_steps=1))

    assert events[-1].data["output"] == {"word": "hi"}
    assert events[-1].data["stopped_reason"] == "completed"


async def test_an_answer_that_never_matches_is_saved_as_text(agent):
    script = [WORDS, *[Says(answer=f"hi {n}") for n in range(3)]]
    events = await events_of(agent(*script, tools=[Echo()], output=FORM))

    error, end = events[-2], events[-1]
    assert (error.type, error.data["type"]) == ("error", "OutputDecodingFailed")
    assert (end.data["stopped_reason"], end.data["answer"]) == ("error", "hi 2")
    assert end.data.get("output") is None
    assert error.data["step"] == max(e.data.get("step", 0) for e in events)


async def test_a_failure_in_the_second_phase_keeps_the_text_of_the_first(agent):
    runtime = agent(WORDS, RateLimited(), tools=[Echo()], output=FORM)

    assert (await runtime.run("Which word?")).answer == "It is hi."


async def test_only_the_answer_stays_in_the_conversation(agent):
    state = AgentState()
    await events_of(agent(WORDS, Says(answer="?"), FITS, tools=[Echo()], output=FORM), state)

    assert state.get_messages() == [
        {"role": "user", "content": "Which word?"},
        {"role": "assistant", "content": "- **word:** hi"},
    ]
    assert state.get_steps()[-1].thought == "It is hi."


async def test_an_output_guardrail_checks_the_rendered_answer(agent):
    guardrails = Guardrails(blocked_patterns=[r"\*\*word:\*\*"])
    events = await events_of(agent(FITS, guardrails=guardrails, output=FORM))

    assert events[-1].data["stopped_reason"] == "blocked"
    assert events[-1].data.get("output") is None


async def test_the_second_phase_runs_when_all_tools_failed(agent):
    async def fail(_):
        return ToolResult(error="out of paper")

    script = [CALL, Says(answer='{"word": "unknown"}')]
    events = await events_of(agent(*script, tools=[Echo(does=fail)], output=FORM))

    assert events[-1].data["stopped_reason"] == "tool_failure_degraded"
    assert events[-1].data["output"] == {"word": "unknown"}


async def test_every_event_round_trips_through_json(agent):
    script = [WORDS, Says(answer="?"), FITS]
    events = await events_of(agent(*script, tools=[Echo()], output=FORM))

    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    for event in events:
        assert Event.from_dict(json.loads(json.dumps(event.to_dict()))).type == event.type


CITED = OutputSchema(
    {
        "type": "object",
        "properties": {
            "summary": {"type": "string"},
            "sources": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "count": {"type": "integer"},
        },
        "required": ["summary"],
    }
)


async def cited_output(agent, value):
    search = Says.call("search", query="ant bee")
    runtime = agent(
        search,
        Says(answer="Done."),
        Says(answer=json.dumps(value)),
        tools=[SearchTool(find)],
        output=CITED,
    )
    events = await events_of(runtime)
    notes = [e.data["numbers"] for e in events if e.data.get("kind") == "citations_removed"]
    return events[-1].data, notes


async def test_unknown_citations_are_removed_from_a_structured_answer(agent):
    value = {"summary": "Ants [1], bees [7].", "sources": [1, 9], "count": 9}

    end, notes = await cited_output(agent, value)

    assert end["output"] == {"summary": "Ants [1], bees.", "sources": [1], "count": 9}
    assert "[7]" not in end["answer"]
    assert notes == [[7, 9]]


async def test_a_structured_answer_still_matches_its_schema_without_citations(agent):
    end, notes = await cited_output(agent, {"summary": "Ants [7].", "sources": [9]})

    assert end["output"] == {"summary": "Ants.", "sources": [9]}
    assert notes == [[7]]


async def test_valid_citations_of_a_structured_answer_stay(agent):
    value = {"summary": "Ants [1].", "sources": [2]}

    end, notes = await cited_output(agent, value)

    assert (end["output"], notes) == (value, [])
