"""Chat completions with OpenAI's client: text, streams, structure, files, functions."""

import asyncio
import base64
import json

import openai
import pytest
from django.utils import timezone

from agents.engine.testing import Call, Says
from agents.knowledge.ingestion import web_pages
from agents.models import Agent, ApiKey, Approval, Run
from agents.runs import service
from chat.api.calls import Caller
from chat.api.openai import completions, conversation
from chat.api.openai.schemas import ChatMessage, Completion

pytestmark = pytest.mark.django_db(transaction=True)

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmM"
    "IQAAAABJRU5ErkJggg=="
)
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def says(text):
    return [{"role": "user", "content": text}]


async def streamed(client, **request):
    stream = await client.chat.completions.create(stream=True, **request)
    return [chunk async for chunk in stream]


async def test_agents_are_models_by_readable_names(client):
    helper = await Agent.objects.aget(name="helper")
    await Agent.objects.acreate(name="Off", enabled=False)

    models = [model async for model in client.models.list()]

    assert [model.id for model in models] == ["helper"]
    assert models[0].owned_by == "ashiato"
    assert (await client.models.retrieve("HELPER")).id == "helper"
    assert (await client.models.retrieve(str(helper.pk))).id == "helper"


async def test_an_unknown_model_is_answered_with_the_names(client):
    with pytest.raises(openai.NotFoundError) as refusal:
        await client.chat.completions.create(model="gpt-9", messages=says("Hi"))

    assert refusal.value.code == "model_not_found"
    assert "helper" in refusal.value.message


async def test_an_agent_with_tools_answers_with_clean_text(client):
    answer = await client.chat.completions.create(
        model="Helper", messages=says("What is 6 * 7?")
    )

    assert "42" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "helper"
    assert answer.usage.total_tokens > 0
    run = await Run.objects.aget()
    assert run.tool_calls == 1
    assert run.api_key_id is not None


async def test_the_stream_has_only_the_answer(client, scripted):
    scripted(
        Says("", (Call("calculator", {"expression": "6*7"}),), answer="I calculate."),
        Says(answer="It is 42."),
    )

    chunks = await streamed(
        client,
        model="helper",
        messages=says("What is 6 * 7?"),
        stream_options={"include_usage": True},
    )

    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(filter(None, texts)) == "It is 42."
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 0


async def test_thoughts_come_if_they_are_asked_for(client, scripted):
    script = [Says.call("calculator", "I need 6*7.", expression="6*7"), Says(answer="42")]
    scripted(*script, *script)

    plain = await client.chat.completions.create(model="helper", messages=says("6*7?"))
    thinking = await client.chat.completions.create(
        model="helper", messages=says("6*7?"), extra_body={"include_reasoning": True}
    )

    assert "reasoning_content" not in plain.choices[0].message.model_dump()
    assert "6*7" in thinking.choices[0].message.reasoning_content


async def test_earlier_messages_and_instructions_reach_the_model(client, scripted):
    model = scripted(Says(answer="Ahoy, Alice!"))

    await client.chat.completions.create(
        model="helper",
        messages=[
            {"role": "system", "content": "Speak like a pirate."},
            {"role": "user", "content": "I'm Alice."},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "Greet me."},
        ],
    )

    system, *messages = model.requests[0]["messages"]
    assert "<caller_instructions>" in system["content"]
    assert "Speak like a pirate." in system["content"]
    texts = [message["content"] for message in messages]
    assert [text for text in texts if text in {"I'm Alice.", "Hello!"}] == [
        "I'm Alice.",
        "Hello!",
    ]
    assert "Greet me." in texts[-1]


async def test_an_answer_has_the_structure_that_was_asked_for(client, scripted):
    await Agent.objects.aget(name="helper")
    scripted(Says(answer="Paris, I think."), Says(answer='{"city": "Paris"}'))
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }

    answer = await client.chat.completions.create(
        model="helper",
        messages=says("The capital of France?"),
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "capital", "schema": schema, "strict": True},
        },
    )

    assert json.loads(answer.choices[0].message.content) == {"city": "Paris"}


async def test_a_schema_that_is_none_is_refused(client):
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.chat.completions.create(
            model="helper",
            messages=says("Hi"),
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": {"type": "nothing"}},
            },
        )

    assert refusal.value.code == "invalid_json_schema"


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_the_same_run_continues_with_the_programs_result(client, scripted, is_streamed):
    model = scripted(
        Says(
            "", (Call("get_weather", {"city": "Oslo"}), Call("get_weather", {"city": "Rome"}))
        ),
        Says(answer="Oslo 4 °C, Rome 21 °C."),
    )
    messages = says("How is the weather in Oslo and Rome?")
    request = {"model": "helper", "tools": [WEATHER]}

    if is_streamed:
        chunks = await streamed(client, messages=messages, **request)
        delta = next(c.choices[0].delta for c in chunks if c.choices[0].delta.tool_calls)
        calls = delta.tool_calls
        assert chunks[-1].choices[0].finish_reason == "tool_calls"
    else:
        first = await client.chat.completions.create(messages=messages, **request)
        calls = first.choices[0].message.tool_calls
        assert first.choices[0].finish_reason == "tool_calls"
    assert [json.loads(call.function.arguments)["city"] for call in calls] == ["Oslo", "Rome"]
    assert (await Run.objects.aget()).status == Run.Status.WAITING

    asked = [
        {"id": c.id, "type": "function", "function": c.function.model_dump()} for c in calls
    ]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": text}
        for call, text in zip(calls, ("4 °C", "21 °C"), strict=True)
    ]
    messages = [*messages, {"role": "assistant", "tool_calls": asked}, *results]
    second = await client.chat.completions.create(messages=messages, **request)

    assert second.choices[0].message.content == "Oslo 4 °C, Rome 21 °C."
    run = await Run.objects.aget()  # one run did it all
    assert run.status == Run.Status.COMPLETED
    returned = [m["content"] for m in model.requests[1]["messages"] if m["role"] == "tool"]
    assert "4 °C" in returned[0]
    assert "21 °C" in returned[1]


async def test_a_result_for_a_run_that_is_gone_starts_a_new_one(client, scripted):
    model = scripted(Says(answer="It is 4 °C in Oslo."))
    call = {
        "id": "call_77_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
    }

    answer = await client.chat.completions.create(
        model="helper",
        tools=[WEATHER],
        messages=[
            *says("How is the weather in Oslo?"),
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_77_1", "content": "4 °C"},
        ],
    )

    assert answer.choices[0].message.content == "It is 4 °C in Oslo."
    assert any("4 °C" in str(message) for message in model.requests[0]["messages"])


@pytest.mark.parametrize("is_stranger", [True, False])
async def test_nobody_else_can_return_a_result(
    client, scripted, make_key, person, stranger, http, is_stranger
):
    scripted(Says.call("get_weather", city="Oslo"), Says(answer="New."))
    first = await client.chat.completions.create(
        model="helper", messages=says("Weather?"), tools=[WEATHER]
    )
    call = first.choices[0].message.tool_calls[0]
    from agents.db import database

    # Another key of the same user, which can't read what it didn't start, neither.
    user = stranger if is_stranger else person
    _key, token = await database.run(make_key, "ask", user=user)
    other = openai.AsyncOpenAI(
        api_key=token, base_url=str(client.base_url), http_client=http, max_retries=0
    )

    await other.chat.completions.create(
        model="helper",
        messages=[
            *says("Weather?"),
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": call.id, "type": "function", "function": call.function.model_dump()}
                ],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "hot"},
        ],
    )

    approval = await Approval.objects.aget()
    assert approval.verdict == Approval.Verdict.WAITING
    assert await Run.objects.acount() == 2


async def test_a_function_never_replaces_a_tool_of_the_agent(client, scripted):
    scripted(Says(answer="never"))
    calculator = {"type": "function", "function": {"name": "calculator"}}

    with pytest.raises(openai.InternalServerError) as failure:
        await client.chat.completions.create(
            model="helper", messages=says("6*7?"), tools=[calculator]
        )

    assert "calculator" in failure.value.message
    assert failure.value.response.headers["x-should-retry"] == "false"


async def test_an_image_and_a_document_reach_the_model(client, scripted):
    model = scripted(Says(answer="A pixel and a note."))
    note = base64.b64encode(b"The launch is on Tuesday.").decode()

    await client.chat.completions.create(
        model="helper",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{PIXEL}"},
                    },
                    {
                        "type": "file",
                        "file": {
                            "filename": "note.txt",
                            "file_data": f"data:text/plain;base64,{note}",
                        },
                    },
                ],
            }
        ],
    )

    run = await Run.objects.aget()
    assert [ref["kind"] for ref in run.files] == ["image", "document"]
    assert await run.attachments.acount() == 1
    assert "note.txt" in str(model.requests[0]["messages"])


@pytest.mark.parametrize(
    "url",
    ["data:image/png;base64,!!!", "http://169.254.169.254/x.png", "https://localhost/x.png"],
)
async def test_files_that_cant_be_had_are_refused(client, url):
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.chat.completions.create(
            model="helper",
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": url}}],
                }
            ],
        )

    assert refusal.value.code == "invalid_file"


async def test_a_blocked_question_ends_as_filtered_content(client, configure):
    from agents.models import GuardrailPattern

    await GuardrailPattern.objects.acreate(
        name="no dragons",
        pattern="dragon",
        stage="input",
        action="block",
        message="No dragons.",
    )

    answer = await client.chat.completions.create(model="helper", messages=says("A dragon?"))

    assert answer.choices[0].finish_reason == "content_filter"
    assert "dragon" in answer.choices[0].message.refusal.lower()
    assert answer.choices[0].message.content is None


async def test_a_failing_model_is_an_error_also_in_the_middle_of_a_stream(client, scripted):
    from agents.engine.errors import ModelError

    scripted(ModelError("The provider is down."))

    with pytest.raises(openai.APIError, match="provider is down"):
        await streamed(client, model="helper", messages=says("Hi"))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ("no JSON", None),
        ({"messages": says("Hi")}, "model"),
        ({"model": "helper", "messages": []}, "messages"),
        ({"model": "helper", "messages": [{"role": "pope"}]}, "messages.0.role"),
        ({"model": "helper", "messages": [{"role": "system", "content": "a"}]}, "messages"),
        ({"model": "helper", "temperature": 9, "messages": says("Hi")}, "temperature"),
    ],
)
async def test_bad_requests_say_what_is_wrong(client, http, body, param):
    response = await http.post(
        "/v1/chat/completions",
        content=body if isinstance(body, str) else json.dumps(body),
        headers={"Authorization": f"Bearer {client.api_key}"},
    )

    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "models"),
        ("GET", "models/helper"),
        ("POST", "chat/completions"),
        ("POST", "embeddings"),
        ("POST", "responses"),
        ("POST", "responses/compact"),
        ("GET", "responses/resp_1_0"),
        ("DELETE", "responses/resp_1_0"),
        ("POST", "responses/resp_1_0/cancel"),
        ("GET", "responses/resp_1_0/input_items"),
    ],
)
async def test_every_address_needs_a_key_that_may_ask(http, make_key, method, path):
    from agents.db import database

    _key, token = await database.run(make_key, "read")

    without = await http.request(method, f"/v1/{path}")
    reading = await http.request(
        method, f"/v1/{path}", headers={"Authorization": f"Bearer {token}"}, content="{}"
    )

    assert without.status_code == 401
    assert reading.status_code == 403
    assert "error" in reading.json()


async def test_a_run_stops_when_its_reader_leaves(client, scripted, person):
    class Endless:
        async def stream(self, **request):
            while True:
                yield {"choices": [{"index": 0, "delta": {"content": "on and on "}}]}
                await asyncio.sleep(0.01)

    scripted(model=Endless())
    key = await ApiKey.objects.select_related("user").aget()
    body = Completion(model="helper", messages=[ChatMessage(role="user", content="Hi")])
    agent = await Agent.objects.aget(name="helper")
    caller = Caller(key)
    talk = await conversation.read(body.messages)
    run, after = await completions.start(caller, agent, talk, body)

    stream = completions.ChatAnswer(caller, run, body, agent, "").stream(after)
    while b"on and on" not in await anext(stream):
        pass
    await stream.aclose()

    await run.arefresh_from_db()
    assert run.stopped_reason == "cancelled"


async def test_too_many_files_are_refused_before_any_is_fetched(client, monkeypatch):
    fetched = []
    monkeypatch.setattr(web_pages, "get", lambda url, *about: fetched.append(url))
    url = "https://example.org/picture.png"
    image = {"type": "image_url", "image_url": {"url": url}}
    item = {"type": "input_image", "image_url": url, "detail": "auto"}

    with pytest.raises(openai.BadRequestError) as completions:
        await client.chat.completions.create(
            model="helper", messages=[{"role": "user", "content": [image] * 500}]
        )
    with pytest.raises(openai.BadRequestError) as responses:
        await client.responses.create(
            model="helper", input=[{"role": "user", "content": [item] * 500}]
        )

    assert completions.value.code == responses.value.code == "invalid_file"
    assert fetched == []


async def test_a_run_whose_program_never_comes_back_is_stopped(client, scripted):
    scripted(Says.call("get_weather", city="Oslo"))
    await client.chat.completions.create(
        model="helper", messages=says("Weather?"), tools=[WEATHER]
    )

    assert await service.stop_unanswered() == 0
    await Approval.objects.aupdate(asked_at=timezone.now() - 2 * service.CLIENT_WAITING)
    assert await service.stop_unanswered() == 1

    run = await Run.objects.aget()
    assert run.stopped_reason == "cancelled"
    assert not await Approval.objects.waiting().aexists()


async def test_no_person_decides_about_a_programs_call(client, scripted, person):
    scripted(Says.call("get_weather", city="Oslo"))
    await client.chat.completions.create(
        model="helper", messages=says("Weather?"), tools=[WEATHER]
    )

    approval = await Approval.objects.select_related("run").aget()
    assert not await Approval.objects.for_user(person).aexists()
    assert approval.is_forbidden_for(person.pk)
