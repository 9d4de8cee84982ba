"""A redacted run contains no personal data, and still works."""

import json

from agents.engine import AgentRuntime, FallbackStrategy, Guardrails, ReActPlanner, ToolRegistry
from agents.engine.events import Event, EventType
from agents.engine.privacy.redaction import Redactor, redact
from agents.engine.testing import Says
from tests.engine.conftest import Echo
from tests.engine.loop.test_approval import _reload_event, collect_events
from tests.engine.loop.test_takeover import Steady, check

MAIL, ACCOUNT = "ann@example.com", "7654321"
QUESTION = f"Look up {MAIL}, account number {ACCOUNT}."
LOOKUP_CALL = Says.call("read", f"I look up {MAIL}.", text=f"{MAIL} or {ACCOUNT}")
FOUND = Says(
    f"{ACCOUNT} is hers.", answer=f"Write to {MAIL} about {ACCOUNT}. " + "And so on. " * 20
)


def agent(dialect, tool):
    planner = ReActPlanner(Steady(dialect, LOOKUP_CALL, FOUND), "steady", dialect=dialect)
    return AgentRuntime(planner, ToolRegistry([tool]), Guardrails(), FallbackStrategy(pause=0))


def events_json(events):
    return json.dumps([event.to_dict() for event in events], ensure_ascii=False)


async def test_personal_data_is_not_saved_but_tools_get_it(dialect):
    tool = Echo("read")

    events = await collect_events(redact(agent(dialect, tool).stream(QUESTION)))

    assert tool.inputs == [{"text": f"{MAIL} or {ACCOUNT}"}]
    assert MAIL not in events_json(events)
    assert ACCOUNT not in events_json(events)
    assert events[0].data["query"] == "Look up ‹email›, account number ‹account›."
    assert events[-1].data["answer"].startswith("Write to ‹email› about ‹account›.")
    check(events)


async def test_streamed_text_is_the_beginning_of_the_redacted_answer(dialect):
    events = await collect_events(redact(agent(dialect, Echo("read")).stream(QUESTION)))

    said = "".join(e.data["content"] for e in events if e.type is EventType.DELTA)
    assert said
    assert events[-1].data["answer"].startswith(said)


async def test_a_run_interrupted_after_any_event_resumes_from_redacted_events(dialect):
    whole = await collect_events(redact(agent(dialect, Echo("read")).stream(QUESTION)))

    for cut in range(1, len(whole)):
        past, later = (
            [_reload_event(event) for event in whole[:cut]],
            agent(dialect, Echo("read")),
        )
        events = [*past, *await collect_events(redact(later.resume(past)))]

        check(events)
        assert MAIL not in events_json(events), cut
        assert events[-1].data["stopped_reason"] == "completed"


def test_ids_and_tool_names_are_not_redacted():
    function = {
        "name": "ask_4111111111111111",
        "arguments": json.dumps({"n": 4111111111111111}),
    }
    data = {"id": "090-1234-5678", "digest": "ab" * 32, "function": function, "step": 3}

    kept = Redactor().event(Event(type=EventType.TOOL_CALL, data=data)).data

    assert (kept["id"], kept["digest"], kept["step"]) == (data["id"], data["digest"], 3)
    assert kept["function"]["name"] == function["name"]
    assert json.loads(kept["function"]["arguments"]) == {"n": "‹card›"}


def test_output_fields_named_like_ids_are_redacted():
    output = {"id": MAIL, "name": MAIL, "account_number": ACCOUNT, "rows": [{"tool": MAIL}]}

    kept = Redactor().event(Event(type=EventType.RUN_FINISHED, data={"output": output})).data

    assert kept["output"] == {
        "id": "‹email›",
        "name": "‹email›",
        "account_number": "‹account›",
        "rows": [{"tool": "‹email›"}],
    }


def test_signed_thinking_is_not_saved():
    block = {"type": "thinking", "thinking": f"{MAIL}?", "signature": "abc"}
    message = {"role": "assistant", "content": MAIL, "thinking_blocks": [block], "model": "m"}
    event = Event(type=EventType.STEP, data={"messages": [message]})

    assert Redactor().event(event).data["messages"] == [
        {"role": "assistant", "content": "‹email›"}
    ]
