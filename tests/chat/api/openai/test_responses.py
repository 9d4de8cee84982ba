"""Responses: items, continuation, storage, compaction, and the WebSocket."""

import json

import openai
import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Group
from django.utils import timezone

from agents.db import database
from agents.engine.testing import Call, Says
from agents.models import Agent, Approval, Run

pytestmark = pytest.mark.django_db(transaction=True)

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


async def streamed(client, **request):
    stream = await client.responses.create(stream=True, **request)
    return [event async for event in stream]


async def test_a_response_has_the_agents_steps_as_items(client):
    response = await client.responses.create(
        model="helper", input="What is 6 * 7?", metadata={"ticket": "12"}
    )

    assert response.status == "completed"
    assert "42" in response.output_text
    assert response.metadata == {"ticket": "12"}
    assert response.usage.total_tokens > 0
    kinds = [item.type for item in response.output]
    assert "ashiato:tool_call" in kinds
    call = next(item for item in response.output if item.type == "ashiato:tool_call")
    assert call.name == "calculator"
    assert call.status == "completed"
    assert kinds[-1] == "message"
    assert response.output[-1].phase == "final_answer"


async def test_a_stream_tells_each_items_life(client, scripted):
    scripted(Says.call("calculator", "I calculate.", expression="6*7"), Says(answer="42"))

    events = await streamed(client, model="helper", input="6 * 7?")

    assert [event.sequence_number for event in events] == list(range(len(events)))
    types = [event.type for event in events]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] == "response.completed"
    added = [e.item.id for e in events if e.type == "response.output_item.added"]
    done = [e.item.id for e in events if e.type == "response.output_item.done"]
    assert sorted(added) == sorted(done)
    deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
    assert "".join(deltas) == events[-1].response.output_text == "42"
    reasoning = [item for item in events[-1].response.output if item.type == "reasoning"]
    assert reasoning[0].content[0].text == "I calculate."


async def test_a_conversation_continues_from_a_response(client, scripted):
    model = scripted(Says(answer="OK."), Says(answer="cobalt"))

    first = await client.responses.create(model="helper", input="The word is cobalt.")
    second = await client.responses.create(
        model="helper", input="Which word?", previous_response_id=first.id
    )

    assert second.output_text == "cobalt"
    assert second.previous_response_id == first.id
    texts = [m["content"] for m in model.requests[1]["messages"]]
    assert any("The word is cobalt." in (text or "") for text in texts)


async def test_stored_responses_are_read_cancelled_and_deleted(client):
    response = await client.responses.create(model="helper", input="What is 6 * 7?")

    again = await client.responses.retrieve(response.id)
    items = await client.responses.input_items.list(response.id)
    cancelled = await client.responses.cancel(response.id)
    await client.responses.delete(response.id)

    assert again.output_text == response.output_text
    assert [item.type for item in again.output] == [item.type for item in response.output]
    assert items.data[0].content[0].text == "What is 6 * 7?"
    assert cancelled.status == "completed"
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(response.id)
    assert await Run.objects.acount() == 1  # its trace stays


async def test_a_stream_is_resumed_after_the_last_event(client, http, scripted):
    scripted(Says(answer="one two three"))
    events = await streamed(client, model="helper", input="Count.")
    id = events[-1].response.id

    rest = await http.get(
        f"/v1/responses/{id}?stream=true&starting_after={events[3].sequence_number}",
        headers={"Authorization": f"Bearer {client.api_key}"},
    )

    numbers = [
        json.loads(line[6:])["sequence_number"]
        for line in rest.text.splitlines()
        if line.startswith("data: {")
    ]
    assert numbers == [event.sequence_number for event in events[4:]]


async def test_what_isnt_stored_or_isnt_theirs_is_not_found(
    client, make_key, stranger, http, scripted
):
    scripted(Says(answer="a"), Says(answer="b"))
    private = await client.responses.create(model="helper", input="Hi", store=False)
    stored = await client.responses.create(model="helper", input="Hi")
    _key, token = await database.run(make_key, "ask", "read", "read_all", user=stranger)
    other = client.with_options(api_key=token)

    for user, id in ((client, private.id), (other, stored.id), (client, "resp_x")):
        with pytest.raises(openai.NotFoundError):
            await user.responses.retrieve(id)
        with pytest.raises(openai.BadRequestError) as refusal:
            await user.responses.create(model="helper", input="Hi", previous_response_id=id)
        assert refusal.value.code == "previous_response_not_found"
        for act in (
            user.responses.delete,
            user.responses.cancel,
            user.responses.input_items.list,
        ):
            with pytest.raises(openai.NotFoundError):
                await act(id)


async def test_functions_are_items_and_the_same_run_continues(client, scripted):
    scripted(
        Says("", (Call("get_weather", {"city": "Oslo"}),)),
        Says(answer="4 °C in Oslo."),
    )

    first = await client.responses.create(
        model="helper", input="Weather in Oslo?", tools=[WEATHER]
    )
    call = first.output[-1]
    second = await client.responses.create(
        model="helper",
        previous_response_id=first.id,
        tools=[WEATHER],
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "4 °C"}],
    )

    assert (call.type, call.name, call.status) == ("function_call", "get_weather", "completed")
    assert json.loads(call.arguments) == {"city": "Oslo"}
    assert second.output_text == "4 °C in Oslo."
    assert second.id != first.id
    assert await Run.objects.acount() == 1
    again = await client.responses.retrieve(first.id)
    assert [item.type for item in again.output] == [item.type for item in first.output]
    items = await client.responses.input_items.list(second.id)
    assert items.data[0].output == "4 °C"


async def test_an_unknown_call_has_no_result(client, scripted):
    scripted(Says(answer="OK."))
    first = await client.responses.create(model="helper", input="Hi")

    with pytest.raises(openai.BadRequestError) as refusal:
        await client.responses.create(
            model="helper",
            previous_response_id=first.id,
            input=[{"type": "function_call_output", "call_id": "call_9_9", "output": "x"}],
        )

    assert refusal.value.code == "call_not_found"


async def test_an_approval_is_an_item_that_waits(deciding_client, scripted):
    await Agent.objects.filter(name="helper").aupdate(auto_execute_tools=False)
    scripted(Says.call("calculator", expression="6*7"), Says(answer="42"))

    first = await deciding_client.responses.create(model="helper", input="6 * 7?")
    request = first.output[-1]
    second = await deciding_client.responses.create(
        model="helper",
        previous_response_id=first.id,
        input=[
            {
                "type": "ashiato:approval_response",
                "approval_request_id": request.id,
                "approve": True,
            }
        ],
    )

    assert (request.type, request.status) == ("ashiato:approval_request", "waiting")
    assert request.name == "calculator"
    assert second.output_text == "42"
    approval = await Approval.objects.aget()
    assert approval.verdict == Approval.Verdict.APPROVED


async def test_without_the_scope_a_request_waits_for_the_browser(client, scripted, monkeypatch):
    from chat.api.openai import answer

    monkeypatch.setattr(answer, "APPROVAL_SECONDS", 0.1)
    await Agent.objects.filter(name="helper").aupdate(auto_execute_tools=False)
    scripted(Says.call("calculator", expression="6*7"))

    response = await client.responses.create(model="helper", input="6 * 7?")
    completion = None
    scripted(Says.call("calculator", expression="6*7"))
    completion = await client.chat.completions.create(
        model="helper", messages=[{"role": "user", "content": "6 * 7?"}]
    )

    assert response.output[-1].status == "waiting"
    assert "/traces/" in completion.choices[0].message.content
    assert completion.choices[0].finish_reason == "stop"
    with pytest.raises(openai.BadRequestError):  # it may not decide
        await client.responses.create(
            model="helper",
            input=[
                {
                    "type": "ashiato:approval_response",
                    "approval_request_id": "apr_1_1_x",
                    "approve": True,
                }
            ],
        )


async def test_structured_text(client, scripted):
    scripted(Says(answer="Paris."), Says(answer='{"city": "Paris"}'))

    response = await client.responses.create(
        model="helper",
        input="The capital of France?",
        text={
            "format": {
                "type": "json_schema",
                "name": "capital",
                "schema": {"type": "object", "properties": {"city": {"type": "string"}}},
            }
        },
    )

    assert json.loads(response.output_text) == {"city": "Paris"}


async def test_a_compacted_conversation_is_its_users_alone(
    client, make_key, stranger, scripted
):
    model = scripted(Says(answer="Tuesday."))
    compacted = await client.responses.compact(
        model="helper",
        input=[
            {"type": "message", "role": "user", "content": "We launch on Tuesday."},
            {"type": "message", "role": "assistant", "content": "Noted."},
        ],
    )
    item = compacted.output[0].model_dump(exclude_none=True)
    question = {"type": "message", "role": "user", "content": "When do we launch?"}

    response = await client.responses.create(model="helper", input=[item, question])
    _key, token = await database.run(make_key, "ask", user=stranger)
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.with_options(api_key=token).responses.create(
            model="helper", input=[item, question]
        )

    assert "Tuesday" not in item["encrypted_content"]
    assert response.output_text == "Tuesday."
    assert "We launch on Tuesday." in str(model.requests[0]["messages"])
    assert refusal.value.code == "invalid_compaction"


async def test_a_response_in_the_background_is_asked_for_later(client, scripted):
    scripted(Says(answer="Done."))

    response = await client.responses.create(model="helper", input="Go.", background=True)
    events = [
        event async for event in await client.responses.retrieve(response.id, stream=True)
    ]

    assert response.status == "in_progress"
    assert events[-1].response.output_text == "Done."


async def test_vectors_of_texts(client, monkeypatch, settings):
    from agents.knowledge import embeddings

    monkeypatch.setattr(embeddings, "configured_model", lambda: embeddings.DEMO)

    floats = await client.embeddings.create(
        model="any", input=["cat", "dog"], encoding_format="float"
    )
    decoded = await client.embeddings.create(model="any", input="cat")

    assert [item.index for item in floats.data] == [0, 1]
    assert decoded.data[0].embedding == pytest.approx(floats.data[0].embedding, abs=1e-6)
    assert floats.usage.prompt_tokens > 0
    for wrong in (["a"] * 513, [""], "x" * 40_001):
        with pytest.raises(openai.BadRequestError):
            await client.embeddings.create(model="any", input=wrong)


def socket_of(token, *headers):
    from project.asgi import application

    authorization = (b"authorization", f"Bearer {token}".encode())
    return WebsocketCommunicator(application, "/v1/responses", [authorization, *headers])


async def turn(socket, **request):
    """Send a request and return the events up to the last one."""
    await socket.send_json_to({"type": "response.create", "model": "helper"} | request)
    events = []
    while not events or events[-1]["type"] not in {
        "response.completed",
        "response.failed",
        "response.incomplete",
        "error",
    }:
        events.append(await socket.receive_json_from(30))
    return events


async def test_a_socket_answers_one_after_the_other(client, scripted):
    scripted(Says(answer="one"), Says(answer="two"), Says(answer="three"))
    socket = socket_of(client.api_key)
    connected, _protocol = await socket.connect()
    assert connected

    first = await turn(socket, input="1", store=False)
    id = first[-1]["response"]["id"]
    second = await turn(socket, input="2", store=False, previous_response_id=id)
    lost = await turn(socket, input="3", previous_response_id="resp_1_77")
    wrong = await turn(socket, input="3", stream=True)
    await socket.disconnect()

    assert first[-1]["response"]["output"][0]["content"][0]["text"] == "one"
    assert second[-1]["response"]["status"] == "completed"
    assert lost[-1]["error"]["code"] == "previous_response_not_found"
    assert wrong[-1]["error"]["param"] == "stream"
    again = socket_of(client.api_key)
    await again.connect()
    forgotten = await turn(again, input="4", previous_response_id=id)
    await again.disconnect()
    assert forgotten[-1]["status"] == 400


async def test_sockets_are_for_programs_with_a_key(client):
    for socket in (
        socket_of("ash_wrong"),
        socket_of(client.api_key, (b"origin", b"http://testserver")),
    ):
        connected, _code = await socket.connect()
        assert not connected


async def test_an_expert_never_continues_the_run_of_another(
    deciding_client, person, stranger, agent
):
    await person.groups.aadd(await Group.objects.acreate(name="Legal"))
    run = await Run.objects.acreate(
        user=stranger, agent=agent, topic="api.x", query="Secret", status=Run.Status.WAITING
    )
    asked = await Approval.objects.acreate(
        run=run,
        step=1,
        call_id="c1",
        agent_name="helper",
        tool="ask_person",
        arguments='{"question": "May we?"}',
        digest="d" * 64,
        why=Approval.Why.QUESTION,
        role="Legal",
        asked_at=timezone.now(),
    )
    answer = {
        "type": "ashiato:approval_response",
        "approval_request_id": f"apr_{run.pk}_1_{asked.digest}",
        "approve": True,
        "answer": "Yes.",
    }

    with pytest.raises(openai.BadRequestError) as refusal:
        await deciding_client.responses.create(model="helper", input=[answer])

    assert refusal.value.code == "approval_not_found"
    assert (await Approval.objects.aget()).verdict == Approval.Verdict.WAITING
