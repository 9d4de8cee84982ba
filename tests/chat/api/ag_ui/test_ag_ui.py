"""AG-UI: a run as the events that front ends know, and what they send back."""

import json

import pytest
from ag_ui.core import (
    AssistantMessage,
    Context,
    EventType,
    FunctionCall,
    ResumeEntry,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
)
from django.test import AsyncClient

from agents.access import api_keys
from agents.db import database
from agents.engine.testing import Call, Says
from agents.models import ApiKey, Run, ToolRegistration
from agents.runs import event_store
from chat.api import waiting
from tests.chat.api.ag_ui.conftest import said
from tests.chat.api.approved_tool import ASK, THANKS, WRITE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


def types(events):
    return [event.type.value for event in events]


def text_of(events):
    return "".join(
        event.delta for event in events if event.type is EventType.TEXT_MESSAGE_CONTENT
    )


async def test_an_answer_with_a_tool_is_one_clean_stream(stream, scripted):
    scripted(
        Says.call("calculator", "I count.", expression="6 * 7"), Says(answer="It is **42**.")
    )

    events = await stream(said("What is 6 * 7?"))

    kinds = types(events)
    assert kinds[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    assert kinds[-1] == "RUN_FINISHED"
    assert kinds.count("STEP_STARTED") == kinds.count("STEP_FINISHED") == 3
    call = kinds.index("TOOL_CALL_START")
    assert kinds[call : call + 3] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
    assert json.loads(events[call + 1].delta) == {"expression": "6 * 7"}
    result = next(event for event in events if event.type is EventType.TOOL_CALL_RESULT)
    assert (result.tool_call_id, result.content) == (events[call].tool_call_id, "42")
    assert kinds.index("REASONING_START") < call
    assert text_of(events) == "It is **42**."
    run = await Run.objects.aget()
    facts = events[1].snapshot["ashiato"]
    assert facts["runId"] == run.pk
    assert facts["traceUrl"].endswith(f"/traces/{run.pk}/")
    assert events[-1].usage[0].model == run.model


async def test_the_state_of_the_front_end_is_kept(stream, scripted):
    scripted(Says(answer="Hello."))

    events = await stream(said("Hello"), state={"color": "blue"})

    assert events[1].snapshot["color"] == "blue"


async def test_the_history_and_instructions_come_from_the_messages(stream, scripted):
    model = scripted(Says(answer="Kyoto."))
    call = ToolCall(id="c1", function=FunctionCall(name="search", arguments="{}"))

    await stream(
        SystemMessage(id="s", content="Answer in one word."),
        said("Where was I?", "m1"),
        AssistantMessage(id="a0", content="I look."),
        AssistantMessage(id="a1", tool_calls=[call]),
        ToolMessage(id="t1", tool_call_id="c1", content="In Kyoto."),
        AssistantMessage(id="a2", content="In Kyoto, in May."),
        said("Which city?", "m2"),
        context=[Context(description="The page", value="Travel diary")],
    )

    run = await Run.objects.aget()
    assert run.query == "Which city?"
    roles = [message["role"] for message in run.history]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert run.history[2]["untrusted"] == "search"
    instructions = model.requests[0]["messages"][0]["content"]
    assert "Answer in one word." in instructions
    assert "Travel diary" in instructions


async def test_an_approval_is_an_interrupt_and_a_resume_continues(stream, scripted, letter):
    scripted(WRITE, THANKS)

    paused = await stream(said("Write to her."))
    outcome = paused[-1].outcome
    interrupt = outcome.interrupts[0]
    resumed = await stream(
        said("Write to her."),
        resume=[
            ResumeEntry(
                interrupt_id=interrupt.id, status="resolved", payload={"approved": True}
            )
        ],
    )

    assert outcome.type == "interrupt"
    assert interrupt.tool_call_id in {
        event.tool_call_id for event in paused if event.type is EventType.TOOL_CALL_START
    }
    assert interrupt.response_schema["required"] == ["approved"]
    assert letter.sent == [{"to": "a@example.org"}]
    assert "TOOL_CALL_START" not in types(resumed)
    assert "TOOL_CALL_RESULT" in types(resumed)
    assert text_of(resumed) == "It is written."
    assert await Run.objects.acount() == 1


async def test_a_cancelled_interrupt_rejects_the_call(stream, scripted, letter):
    scripted(WRITE, Says(answer="Not written."))
    paused = await stream(said("Write to her."))
    id = paused[-1].outcome.interrupts[0].id

    resumed = await stream(
        said("Write to her."), resume=[ResumeEntry(interrupt_id=id, status="cancelled")]
    )

    assert letter.sent == []
    assert text_of(resumed) == "Not written."


async def test_two_calls_are_decided_one_after_the_other(stream, scripted, letter):
    calls = (Call("calculator", {"to": "a"}), Call("calculator", {"to": "b"}))
    scripted(Says("Two letters.", calls), THANKS)

    paused = await stream(said("Write to both."))
    first, second = paused[-1].outcome.interrupts
    approve = {"status": "resolved", "payload": {"approved": True}}
    half = await stream(said("x"), resume=[ResumeEntry(interrupt_id=first.id, **approve)])
    done = await stream(said("x"), resume=[ResumeEntry(interrupt_id=second.id, **approve)])

    assert [entry.id for entry in half[-1].outcome.interrupts] == [second.id]
    assert text_of(done) == "It is written."
    assert letter.sent == [{"to": "a"}, {"to": "b"}]


async def test_a_tool_of_the_front_end_is_called_by_it(stream, scripted):
    tool = Tool(
        name="pick_color",
        description="Lets the user pick a color.",
        parameters={"type": "object", "properties": {}},
    )
    scripted(Says.call("pick_color"), Says(answer="You picked blue."))

    asked = await stream(said("Which color?"), tools=[tool])
    pending = asked[-1].outcome.pending_tool_call_ids
    call = ToolCall(id=pending[0], function=FunctionCall(name="pick_color", arguments="{}"))
    answered = await stream(
        said("Which color?"),
        AssistantMessage(id="a", tool_calls=[call]),
        ToolMessage(id="t", tool_call_id=pending[0], content="blue"),
        tools=[tool],
    )

    starts = [event for event in asked if event.type is EventType.TOOL_CALL_START]
    assert [(event.tool_call_id, event.tool_call_name) for event in starts] == [
        (pending[0], "pick_color")
    ]
    assert not {"TOOL_CALL_START", "TOOL_CALL_RESULT"} & set(types(answered))
    assert text_of(answered) == "You picked blue."


async def test_an_error_ends_the_stream_as_a_run_error(stream, scripted):
    scripted(ValueError("broken"))

    events = await stream(said("Hello"))

    assert events[-1].type is EventType.RUN_ERROR
    assert events[-1].code == "error"
    assert "broken" not in events[-1].message


async def test_rights_are_those_of_the_key(post, scripted, letter, stranger):
    scripted(WRITE)
    paused = await post(said("Write to her."))
    body = b"".join([chunk async for chunk in paused.streaming_content]).decode()
    run = await Run.objects.aget()
    (request,) = await database.run(waiting.requests_of, run)
    assert request.id in body
    seq = await database.run(event_store.last_seq, run)
    entry = ResumeEntry(interrupt_id=request.id, status="resolved", payload={"approved": True})

    unscoped = await post(said("x"), scopes=["read"])
    foreign = await post(said("x"), resume=[entry], user=stranger)
    without = await post(said("x"), resume=[entry], scopes=["ask", "read"])
    unknown = await post(said("x"), agent="nobody")

    assert [r.status_code for r in (unscoped, foreign, without, unknown)] == [
        403,
        404,
        403,
        404,
    ]
    assert await database.run(event_store.last_seq, run) == seq
    assert letter.sent == []


async def test_a_message_that_is_too_long_is_refused_with_a_sentence(post):
    response = await post(said("x" * 1_200_000))

    assert response.status_code == 422
    assert "1200 kB" in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 422),
        ("[]", 422),
        ('{"threadId": "t"}', 422),
        ('{"threadId": "t", "runId": "r", "messages": []}', 422),
        ('{"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "robot"}]}', 422),
        (
            '{"threadId": "t", "runId": "r", "messages": [], '
            '"resume": [{"interruptId": "1-x", "status": "resolved"}]}',
            404,
        ),
    ],
)
async def test_bad_input_is_explained(person, body, status):
    _key, token = await database.run(api_keys.create, person, "x", ApiKey.Scope.values)

    response = await AsyncClient().post(
        "/ag-ui/helper",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )

    assert response.status_code == status
    assert response.json()["detail"]


async def test_a_question_is_answered_by_its_text(stream, scripted, agent):
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="ask_person"))
    scripted(ASK, Says(answer="Kyoto it is."))

    paused = await stream(said("Where to?"))
    (interrupt,) = paused[-1].outcome.interrupts
    resumed = await stream(
        said("Where to?"),
        resume=[
            ResumeEntry(
                interrupt_id=interrupt.id, status="resolved", payload={"answer": "Kyoto"}
            )
        ],
    )

    assert interrupt.message == "Which city?"
    assert text_of(resumed) == "Kyoto it is."
