"""Runs with an output schema, from the question to the end."""

import json

from agents.engine import AgentState, Guardrails, RateLimited, ToolResult
from agents.engine.events import Event
from agents.engine.loop.output_schema import OutputSchema
from agents.engine.testing import Says
from tests.engine.conftest import Echo

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


def steps(events):
    return [(e.data["kind"], e.data["status"]) for e in events if e.type == "step"]


async def test_tools_come_first_and_the_schema_only_after_them(agent):
    runtime = agent(CALL, WORDS, FITS, tools=[Echo()], output=FORM)
    events = await events_of(runtime)

    requests, end = runtime.planner.llm.requests, events[-1].data
    assert ["response_format" in request for request in requests] == [False, False, True]
    assert requests[-1]["tools"] is None
    assert (end["output"], end["answer"]) == ({"word": "hi"}, "- **word:** hi")
    assert (end["stopped_reason"], end["turns"], end["tool_calls"]) == ("completed", 2, 1)
    assert steps(events) == [
        ("thought", "done"),
        ("tool", "done"),
        ("thought", "done"),
        ("answer", "done"),
    ]


async def test_the_words_of_the_first_phase_are_a_thought_and_never_the_answer(agent):
    events = await events_of(agent(WORDS, FITS, tools=[Echo()], output=FORM))

    assert "delta" not in [event.type for event in events]
    assert [e.data["content"] for e in events if e.type == "thought"] == ["It is hi."]
    assert next(e.data["thought"] for e in events if e.type == "step") == "It is hi."


async def test_without_tools_the_schema_is_sent_at_once(agent):
    runtime = agent(FITS, output=FORM)
    events = await events_of(runtime)

    assert "response_format" in runtime.planner.llm.requests[0]
    assert (events[-1].data["output"], events[-1].data["turns"]) == ({"word": "hi"}, 1)


async def test_a_run_that_thought_until_its_last_step_still_gives_its_answer(agent):
    script = [WORDS, Says(answer="{}"), FITS]
    events = await events_of(agent(*script, tools=[Echo()], output=FORM, max_steps=1))

    assert events[-1].data["output"] == {"word": "hi"}
    assert events[-1].data["stopped_reason"] == "completed"


async def test_an_answer_that_never_fits_is_kept_as_it_was_said(agent):
    script = [WORDS, *[Says(answer=f"hi {n}") for n in range(3)]]
    events = await events_of(agent(*script, tools=[Echo()], output=FORM))

    error, end = events[-2], events[-1]
    assert (error.type, error.data["type"]) == ("error", "OutputDecodingFailed")
    assert (end.data["stopped_reason"], end.data["answer"]) == ("error", "hi 2")
    assert end.data.get("output") is None
    assert error.data["step"] == max(e.data.get("step", 0) for e in events)


async def test_a_provider_that_fails_in_the_second_phase_leaves_the_words_of_the_first(agent):
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


async def test_a_rule_about_answers_reads_the_rendered_one(agent):
    guardrails = Guardrails(max_output_tokens=3)
    events = await events_of(agent(FITS, guardrails=guardrails, output=FORM))

    assert events[-1].data["stopped_reason"] == "blocked"
    assert events[-1].data.get("output") is None


async def test_tools_that_are_all_out_of_order_leave_the_second_phase(agent):
    async def fail(_):
        return ToolResult(error="out of paper")

    script = [CALL, Says(answer='{"word": "unknown"}')]
    events = await events_of(agent(*script, tools=[Echo(does=fail)], output=FORM))

    assert events[-1].data["stopped_reason"] == "tool_failure_degraded"
    assert events[-1].data["output"] == {"word": "unknown"}


async def test_every_event_survives_the_way_to_json(agent):
    script = [WORDS, Says(answer="?"), FITS]
    events = await events_of(agent(*script, tools=[Echo()], output=FORM))

    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    for event in events:
        assert Event.from_dict(json.loads(json.dumps(event.to_dict()))).type == event.type
