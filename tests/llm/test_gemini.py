"""Gemini's generateContent API, called directly: what is sent, and what its stream can do."""

import json
import re

import pytest

from agents.engine.errors import AgentError, ModelError, ProviderFailed, RateLimited
from agents.engine.turn.assembly import assemble
from agents.llm.direct.direct_model import DirectModel
from agents.llm.direct.gemini import NO_SIGNATURE, build_body
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.wire import provider_errors
from tests.llm import gemini_wire as wire
from tests.wire import Reply, WireServer

pytestmark = [
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

KEY = "AIza-very-secret-key-0123456789"
OLD, NEW = "gemini/gemini-2.5-flash", "gemini/gemini-3-pro-preview"
HELLO = [{"role": "user", "content": "hello"}]


def call(id, name="calculator", arguments="{}", signature=""):
    made = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    kept = {"provider_specific_fields": {"thought_signature": signature}} if signature else {}
    return {**made, **kept}


def calling(*calls, content=None, **fields):
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **fields}


def result(id, content="2"):
    return {"role": "tool", "content": content, "tool_call_id": id}


def tool(**schema):
    function = {"name": "calculator", "description": "Sums.", "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [tool(type="object", properties={"sum": {"type": "string"}})]


def body(messages=HELLO, tools=None, model=OLD, **parameters):
    return build_body(model, messages, tools, parameters)


async def ask(llm, model=OLD, messages=HELLO, **request):
    return [c async for c in llm.stream(model=model, messages=messages, **request)]


async def sent(client, model=OLD, **request):
    async with WireServer([wire.reply([wire.text("ok")])]) as server:
        fresh = json.loads(json.dumps(request))
        await ask(client(KEY, wire.address(server)), model, **fresh)
    return server.requests[0]


async def turn(reply, model=OLD):
    async with WireServer([reply]) as server:
        return assemble(await ask(DirectModel(KEY, wire.address(server)), model))


async def failure(reply):
    with pytest.raises(AgentError) as caught:
        await turn(reply)
    return caught.value


HISTORY = [
    {"role": "system", "content": "Be brief."},
    *HELLO,
    calling(call("c1", signature="s1"), call("c2", "clock", '{"at": 1}'), content="I look."),
    result("c1"),
    result("c2", ""),
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "and"},
    {"role": "user", "content": "then?"},
]


def camel_case(value):
    """Return LiteLLM's request with the names of Google's documentation."""
    if isinstance(value, list):
        return [camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub(r"_(.)", lambda match: match[1].upper(), name): camel_case(item)
        for name, item in value.items()
    }


@pytest.mark.parametrize(
    ("model", "request_"),
    [
        (OLD, {"max_tokens": 9, "stop": ["x"], "temperature": 0.5, "top_p": 0.5, "top_k": 3}),
        (OLD, {"tools": TOOLS, "tool_choice": "required", "seed": 1, "presence_penalty": 0.5}),
        (OLD, {"tools": TOOLS, "tool_choice": "none", "reasoning_effort": "medium"}),
        (OLD, {"reasoning_effort": "minimal", "stop": "x", "user": "u1", "min_p": 0.5}),
        (OLD, {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        (NEW, {"tools": TOOLS, "reasoning_effort": "low", "temperature": 1.0}),
        (NEW, {"reasoning_effort": "none", "frequency_penalty": 0.5, "temperature": 1.0}),
        ("gemini/gemini-3-flash-preview", {"reasoning_effort": "minimal", "temperature": 1.0}),
    ],
)
async def test_both_routes_send_the_same_request(model, request_):
    direct = await sent(DirectModel, model, messages=HISTORY, **request_)
    litellm = await sent(LiteLLMModel, model, messages=HISTORY, **request_)

    theirs = camel_case(litellm.body)
    for content in theirs["contents"]:
        for part in content["parts"]:
            if response := part.get("functionResponse"):
                response["response"] = {"output": response["response"]["content"]}
    for tools in theirs.get("tools", ()):
        for declaration in tools["functionDeclarations"]:
            declaration["parametersJsonSchema"] = declaration.pop("parameters")
    assert direct.body == theirs
    assert direct.path == litellm.path
    assert direct.headers["x-goog-api-key"] == litellm.headers["x-goog-api-key"] == KEY


def test_results_stand_alone_between_calls_and_what_follows():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    sound = {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "see"}, picture, sound]}
    history = [*HELLO, calling(call("a")), result("a"), asked, *HELLO]

    contents = body(history)["contents"]

    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "calculator", "response": {"output": "2"}}}
    ]
    assert contents[3]["parts"] == [
        {"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "BBBB"}},
        {"text": "hello"},
    ]


def test_a_result_has_the_name_of_its_call_even_if_ids_repeat():
    history = [
        *HELLO,
        calling(call("a", "clock")),
        result("a"),
        calling(call("a")),
        result("a"),
    ]

    names = [
        part["functionResponse"]["name"]
        for content in body(history)["contents"]
        for part in content["parts"]
        if "functionResponse" in part
    ]
    assert names == ["clock", "calculator"]


def test_new_models_get_the_ids_of_calls_and_a_signature_for_those_of_others():
    history = [*HELLO, calling(call("a"), call("b")), result("a"), result("b")]
    _, made, answered = body(history, model=NEW)["contents"]

    assert [part["functionCall"]["id"] for part in made["parts"]] == ["a", "b"]
    assert [part["functionResponse"]["id"] for part in answered["parts"]] == ["a", "b"]
    assert [part.get("thoughtSignature") for part in made["parts"]] == [NO_SIGNATURE, None]
    assert all("thoughtSignature" not in part for part in body(history)["contents"][1]["parts"])


@pytest.mark.parametrize(
    ("content", "signatures", "expected"),
    [
        ("I look.", ["text", "call"], [("I look.", "text"), (None, "call")]),
        ("I look.", ["call"], [("I look.", None), (None, "call")]),
        (None, ["text"], [("", "text"), (None, "call")]),
        (None, ["call"], [(None, "call")]),
    ],
)
def test_signatures_are_sent_where_they_came_from(content, signatures, expected):
    """LiteLLM, which may have written the history, lists those of the calls twice."""
    kept = {"provider_specific_fields": {"thought_signatures": signatures}}
    made = calling(call("a", signature="call"), content=content, **kept)
    parts = body([*HELLO, made, result("a")], model=NEW)["contents"][1]["parts"]

    assert [(part.get("text"), part.get("thoughtSignature")) for part in parts] == expected


@pytest.mark.parametrize("arguments", ["{}", "", "[1]", "{oops"])
def test_arguments_are_always_an_object(arguments):
    made = body([*HELLO, calling(call("a", arguments=arguments)), result("a")])["contents"][1]

    assert made["parts"] == [{"functionCall": {"name": "calculator", "args": {}}}]


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        ([{"role": "user", "content": ""}], ["user"]),
        ([{"role": "system", "content": "Be brief."}], ["user"]),
        ([{"role": "assistant", "content": "Hi"}, *HELLO], ["user", "model", "user"]),
        ([*HELLO, {"role": "assistant", "content": ""}, *HELLO], ["user"]),
    ],
)
def test_no_content_is_empty_and_the_user_begins(messages, roles):
    contents = body(messages)["contents"]

    assert [content["role"] for content in contents] == roles
    assert all(part["text"] for content in contents for part in content["parts"])


def test_a_tools_schema_is_sent_as_json_schema_unchanged():
    schema = {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/place"}, "kind": {"enum": [1, 2]}},
        "$defs": {"place": {"type": ["string", "null"], "const": "x"}},
        "additionalProperties": False,
    }
    empty = tool(type="object", properties={})
    [declared, bare] = body(tools=[tool(**schema), empty])["tools"][0]["functionDeclarations"]

    assert declared["parametersJsonSchema"] == schema
    assert "parameters" not in declared
    assert bare == {"name": "calculator", "description": "Sums."}


def test_a_call_of_one_tool_can_be_forced():
    choice = {"type": "function", "function": {"name": "calculator"}}
    config = body(tools=TOOLS, tool_choice=choice)["toolConfig"]["functionCallingConfig"]

    assert config == {"mode": "ANY", "allowedFunctionNames": ["calculator"]}


def test_an_answers_schema_safety_settings_and_service_tier_are_sent():
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {}}}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    sent_body = body(response_format=form, safety_settings=safety, service_tier="flex")

    assert sent_body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
    }
    assert (sent_body["safetySettings"], sent_body["serviceTier"]) == (safety, "flex")


@pytest.mark.parametrize(
    "parameters", [{}, {"service_tier": "auto"}, {"parallel_tool_calls": True}]
)
def test_nothing_is_configured_that_is_the_default(parameters):
    assert body(**parameters) == {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}


@pytest.mark.parametrize(
    ("model", "parameters", "thinking"),
    [
        (OLD, {"reasoning_effort": "high"}, {"thinkingBudget": 4096, "includeThoughts": True}),
        (OLD, {"reasoning_effort": "none"}, {"thinkingBudget": 0, "includeThoughts": False}),
        (
            OLD,
            {"thinking": {"type": "disabled"}},
            {"thinkingBudget": 0, "includeThoughts": False},
        ),
        (
            "gemini/gemini-2.5-pro",
            {"reasoning_effort": "minimal"},
            {"thinkingBudget": 128, "includeThoughts": True},
        ),
        (
            NEW,
            {"reasoning_effort": {"effort": "xhigh"}},
            {"thinkingLevel": "high", "includeThoughts": True},
        ),
        (
            NEW,
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
            {"includeThoughts": True},
        ),
        (
            "gemini/gemini-3.8-flash",  # flash, but without minimal effort or sampling
            {"reasoning_effort": "minimal", "temperature": 0.5},
            {"thinkingLevel": "low", "includeThoughts": True},
        ),
        (
            "gemini/gemini-flash-latest",
            {"reasoning_effort": "low"},
            {"thinkingLevel": "low", "includeThoughts": True},
        ),
    ],
)
def test_reasoning_is_requested_as_the_model_takes_it(model, parameters, thinking):
    assert body(model=model, **parameters)["generationConfig"] == {"thinkingConfig": thinking}


async def test_a_short_reply_is_requested_in_one_piece():
    [event] = wire.reply([wire.thought("Hm."), wire.text("I look."), wire.call("clock")]).parts
    data = json.dumps(event, indent=1).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    async with WireServer([Reply(parts=(data,), headers=headers)]) as server:
        llm = DirectModel(KEY, wire.address(server)).for_short_reply()
        said = assemble(await ask(llm))

    [request] = server.requests
    assert request.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert request.body.keys() == {"contents"}
    assert (said.content, said.reasoning, said.finish_reason) == (
        "I look.",
        "Hm.",
        "tool_calls",
    )
    assert [made.name for made in said.tool_calls] == ["clock"]
    assert said.usage["total_tokens"] == 18


# Streams.


async def test_equal_calls_without_ids_get_their_own():
    reply = wire.reply([wire.call("clock"), wire.call("clock")], [wire.call("clock")])
    first = await turn(reply)
    second = await turn(reply)

    ids = {made.id for said in (first, second) for made in said.tool_calls}
    assert len(ids) == 6


async def test_an_id_of_the_provider_is_kept():
    part = {"functionCall": {"id": "fc-1", "name": "clock"}}
    [made] = (await turn(wire.reply([part]))).tool_calls

    assert (made.id, made.input) == ("fc-1", {})


async def test_signatures_are_kept_with_the_part_they_came_with():
    reply = wire.reply(
        [wire.text("I look.", thoughtSignature="s1")],
        [wire.call("clock", signature="s2"), wire.call("calculator")],
        [{"text": "", "thoughtSignature": "s3"}],
    )
    said = await turn(reply, NEW)

    assert said.kept == {"provider_specific_fields": {"thought_signatures": ["s1", "s3"]}}
    assert [made.kept for made in said.tool_calls] == [
        {"provider_specific_fields": {"thought_signature": "s2"}},
        {},
    ]


async def test_thoughts_are_displayed_and_not_sent_back():
    said = await turn(wire.reply([wire.thought("Hm.")], [wire.text("Hello")]))

    assert (said.reasoning, said.content, said.kept) == ("Hm.", "Hello", {})


async def test_events_can_be_split_anywhere():
    reply = wire.reply([wire.text("こんにちは")], [wire.text(", world")])
    events = (json.dumps(event, ensure_ascii=False).encode() for event in reply.parts)
    data = b"".join(b"data: %b\r\n\r\n" % event for event in events)
    pieces = tuple(data[at : at + 7] for at in range(0, len(data), 7))

    assert (await turn(Reply(parts=pieces))).content == "こんにちは, world"


async def test_a_finish_reason_in_every_event_loses_nothing():
    """Some models report one from the start."""
    events = [wire.chunk(wire.text(word)) for word in ("one", " two", " three")]
    for event in events:
        event["candidates"][0]["finishReason"] = "STOP"

    assert (await turn(Reply(parts=tuple(events)))).content == "one two three"


async def test_usage_is_reported_once_with_thoughts_cached_tokens_and_sound():
    reply = wire.reply([wire.text("one")], [wire.text("two")])
    for event in reply.parts:
        event["usageMetadata"] = {
            "promptTokenCount": 1000,
            "toolUsePromptTokenCount": 3,
            "candidatesTokenCount": 7,
            "thoughtsTokenCount": 20,
            "cachedContentTokenCount": 400,
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 800},
                {"modality": "AUDIO", "tokenCount": 200},
            ],
        }
    async with WireServer([reply]) as server:
        chunks = await ask(DirectModel(KEY, wire.address(server)))

    [used] = [chunk["usage"] for chunk in chunks if "usage" in chunk]
    assert (used["prompt_tokens"], used["completion_tokens"]) == (1003, 27)
    assert used["prompt_tokens_details"] == {"cached_tokens": 400, "audio_tokens": 200}
    assert used["completion_tokens_details"] == {"reasoning_tokens": 20}
    # $0.30 per million, $1 for sound, $0.03 for what is cached, and $2.50 for the answer.
    assert used["cost"] == pytest.approx((403 * 0.3 + 200 + 400 * 0.03 + 27 * 2.5) / 1e6)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("MAX_TOKENS", "length"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("UNEXPECTED_TOOL_CALL", "malformed_function_call"),
        ("MISSING_THOUGHT_SIGNATURE", "finish_reason_unspecified"),
        ("OF_THE_FUTURE", "of_the_future"),
    ],
)
async def test_finish_reasons_are_translated(reason, finish):
    assert (await turn(wire.reply([wire.text("ok")], stop=reason))).finish_reason == finish


@pytest.mark.parametrize(("code", "kind"), [(503, ProviderFailed), (429, RateLimited)])
async def test_an_error_in_mid_stream_has_its_kind(code, kind):
    event = wire.error(code, f"Not now, {KEY}")
    told = await failure(Reply(parts=(wire.chunk(wire.text("Half")), event)))

    assert type(told) is kind
    assert KEY not in str(told)


async def test_an_invalid_key_is_reported_as_one():
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    words = "API key not valid. Please pass a valid API key."
    error = {"code": 400, "message": words, "status": "INVALID_ARGUMENT", "details": [reason]}
    data = json.dumps({"error": error}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    told = await failure(Reply(parts=(data,), status=400, headers=headers))

    assert type(told) is ModelError
    assert str(told) == provider_errors.KEY_REJECTED.fill(OLD, words)
