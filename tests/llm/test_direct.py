"""The direct route: unusual servers and errors, proxies and connections."""

import asyncio
import base64
import gzip
import json
import time
from contextlib import aclosing

import pytest

from agents.engine.errors import AgentConnectionError, AgentError, ModelError, RateLimited
from agents.engine.turn.assembly import assemble
from agents.engine.turn.reasoning import portable_message
from agents.llm import http, provider_errors
from agents.llm.direct_model import DirectModel
from agents.llm.http import error_message
from tests.bench.fake_llm import FakeLLM, Plan, stamps
from tests.wire import DONE, SSE, USAGE, Reply, WireServer, chunk, say

KEY = "sk-very-secret-key-0123456789"
MODEL = "openai/wire"
HELLO = [{"role": "user", "content": "hello"}]


async def ask(llm, model=MODEL, **request):
    return [c async for c in llm.stream(model=model, **{"messages": HELLO, **request})]


async def turn(reply, model=MODEL, **request):
    async with WireServer([reply]) as server:
        return assemble(await ask(DirectModel(KEY, server.url), model, **request))


async def failure(reply, model=MODEL):
    async with WireServer([reply]) as server:
        with pytest.raises(AgentError) as caught:
            await ask(DirectModel(KEY, server.url), model)
    return caught.value


async def sent_request(model, **request):
    async with WireServer(lambda _: say("ok")) as server:
        await ask(DirectModel(KEY, server.url), model, **request)
    return server.requests[0]


def framed_reply(body, status=200, kind="application/json", **headers):
    length = {"Content-Type": kind, "Content-Length": str(len(body))}
    return Reply(parts=(body,), status=status, headers=length | headers)


def event(delta, finish=None):
    return b"data: %b\n\n" % json.dumps(chunk(delta, finish)).encode()


WHOLE = {
    "id": "1",
    "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}],
    "usage": USAGE,
}


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("indent", [None, 2])
async def test_an_answer_in_one_piece_is_read_whatever_it_calls_itself(kind, indent):
    body = json.dumps(WHOLE, indent=indent).encode() + b"\n"
    said = await turn(framed_reply(body, kind=kind))

    assert (said.content, said.usage["total_tokens"]) == ("Hello", 18)


async def test_words_that_come_at_once_are_one_chunk_and_garbage_after_them_loses_none():
    words = b"".join(event({"content": word}) for word in ("Look", "ing ", "up"))
    reply = Reply(parts=(event({"role": "assistant"}), words + b"data: {garbage\n\n"))
    async with WireServer([reply]) as server:
        chunks = DirectModel(KEY, server.url).stream(model=MODEL, messages=HELLO)
        heard = [await anext(chunks), await anext(chunks)]
        with pytest.raises(ModelError):
            await anext(chunks)

    assert heard[1]["choices"][0]["delta"] == {"content": "Looking up"}


async def test_calls_in_an_answer_in_one_piece_are_calls():
    function = {"name": "clock", "arguments": "{}"}
    calls = [{"id": f"c{n}", "type": "function", "function": function} for n in range(2)]
    choices = [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "stop"}]
    said = await turn(framed_reply(json.dumps({"choices": choices}).encode()))

    assert [call.id for call in said.tool_calls] == ["c0", "c1"]


async def test_a_packed_stream_is_unpacked():
    packed = gzip.compress(event({"content": "Hello"}, "stop") + DONE)
    said = await turn(Reply(parts=(packed[:9], packed[9:]), headers=SSE | GZIP))

    assert said.content == "Hello"


GZIP = {"Content-Encoding": "gzip"}


async def test_a_packed_stream_that_cannot_be_unpacked_is_no_answer():
    error = await failure(Reply(parts=(b"not packed at all",), headers=SSE | GZIP))

    assert isinstance(error, AgentConnectionError)


async def test_an_answer_cut_inside_a_character_is_put_together():
    whole = event({"content": "日本"}).replace(rb"\u65e5\u672c", "日本".encode())
    at = whole.index("本".encode()) + 1
    said = await turn(Reply(parts=(whole[:at], 0.02, whole[at:], event({}, "stop"), DONE)))

    assert said.content == "日本"


async def test_a_header_as_long_as_gateways_write_them_is_read():
    said = await turn(framed_reply(json.dumps(WHOLE).encode(), **{"X-Policy": "x" * 30_000}))

    assert said.content == "Hello"


async def test_a_page_for_people_is_not_taken_for_an_answer():
    error = await failure(framed_reply(b"<html><title>Log in</title></html>", kind="text/html"))

    assert str(error) == provider_errors.UNREADABLE_RESPONSE.format(model=MODEL)


async def test_a_line_without_an_end_is_given_up():
    endless = [b"data: ", *[b"x" * 1024 * 1024] * 17]
    error = await failure(Reply(parts=tuple(endless)))

    assert str(error) == provider_errors.UNREADABLE_RESPONSE.format(model=MODEL)


async def test_a_redirect_is_not_followed_with_a_key():
    async with WireServer([say("stolen")]) as thief:
        headers = {"Location": f"{thief.url}/chat/completions", "Content-Length": "0"}
        error = await failure(Reply(status=307, headers=headers))

    assert "redirected to another URL" in str(error)
    assert thief.requests == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        # OpenAI, Groq, DeepSeek, Together
        ({"error": {"message": "No.", "type": "x", "code": None}}, "No."),
        # OpenRouter, with what the provider behind it said
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": '{"error":{"message":"No."}}', "provider_name": "X"},
                }
            },
            "Provider returned error: No.",
        ),
        # xAI
        ({"code": "invalid-argument", "error": "No."}, "No."),
        # Mistral
        ({"object": "error", "message": "No.", "type": "invalid_request", "code": 1}, "No."),
        ({"message": "No.", "request_id": "1"}, "No."),
        (
            {
                "object": "error",
                "message": {
                    "detail": [{"loc": ["body", "messages", 2, "x"], "msg": "Extra inputs."}]
                },
            },
            "body.messages.2.x: Extra inputs.",
        ),
        # vLLM, Cerebras
        ({"detail": "No."}, "No."),
        ({"detail": [{"msg": "One."}, {"msg": "Two."}]}, "One.; Two."),
        # Ollama, LM Studio
        ({"error": "No."}, "No."),
        # Gemini's idea of OpenAI's wire
        ([{"error": {"code": 400, "message": "No.", "status": "INVALID"}}], "No."),
    ],
)
async def test_every_providers_error_has_its_words(body, words):
    error = await failure(framed_reply(json.dumps(body).encode(), 400))

    assert str(error) == provider_errors.REQUEST_REJECTED.fill(MODEL, words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"upstream connect error\nreset", "upstream connect error"),
        (b"<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
        (b"<html></html>", ""),
        (b"", ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"error": ' * 900 + b"1" + b"}" * 900, ""),
        (b"[" * 50_000, "[" * 50_000),
        (b"null", ""),
    ],
)
def test_an_error_that_is_no_json_is_told_as_well_as_it_can_be(body, words):
    assert error_message(body) == words


async def test_an_error_that_never_ends_is_told_in_time(monkeypatch):
    monkeypatch.setattr(http, "ERROR_TIMEOUT_SECONDS", 0.2)
    slow = Reply(parts=(b"Slow down", 60.0), status=429)

    assert isinstance(await asyncio.wait_for(failure(slow), 10), RateLimited)


@pytest.mark.parametrize(
    "error",
    [
        # OpenAI
        {"message": "Your input exceeds the limit.", "code": "context_length_exceeded"},
        # vLLM, OpenRouter, DeepSeek
        {"message": "This model's maximum context length is 8192 tokens."},
        # llama.cpp
        {"message": "the request is too large", "type": "exceed_context_size_error"},
        # Groq
        {"message": "Please reduce the length of the messages or completion."},
        # xAI
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        # Mistral
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    ],
)
async def test_a_conversation_that_is_too_long_is_told_as_such(error):
    told = await failure(framed_reply(json.dumps({"error": error}).encode(), 400))

    opening = provider_errors.CHAT_TOO_LONG.quoting.format(model=MODEL, words="")
    assert str(told).startswith(opening)


# Connections


@pytest.fixture
async def keeping():
    """A server with persistent connections, and how many there were."""
    model, connected = FakeLLM(), []

    async def serve(reader, writer):
        connected.append(writer)
        await model.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", connected
        await http.close()


async def test_a_connection_is_used_again(keeping):
    url, connected = keeping
    name = f"openai/{Plan(tokens=20).model}"
    for _ in range(3):
        said = assemble(await ask(DirectModel(base_url=url), name))

        assert len(stamps(said.content)) == 20
    assert len(connected) == 1


async def test_a_connection_that_was_left_is_not_used_again(keeping):
    url, connected = keeping
    name = f"openai/{Plan(tokens=500, rate=200).model}"
    chunks = DirectModel(base_url=url).stream(model=name, messages=HELLO)
    await anext(chunks)
    await chunks.aclose()
    await ask(DirectModel(base_url=url), f"openai/{Plan(tokens=1).model}")

    assert len(connected) == 2


async def test_the_first_word_is_not_waited_for_as_the_others_are():
    begun = chunk({"role": "assistant", "content": ""})
    said = Reply(parts=(begun, 0.05, chunk({"content": "Hello"}), 0.05, *say(" you").parts))
    async with WireServer([said]) as server, asyncio.timeout(30):
        chunks = DirectModel(KEY, server.url, batch_seconds=3600).stream(
            model=MODEL, messages=HELLO
        )
        async with aclosing(chunks):
            heard = [await anext(chunks), await anext(chunks)]

    assert [each["choices"][0]["delta"]["content"] for each in heard] == ["", "Hello"]


@pytest.mark.parametrize(
    ("answers", "beat"), [(1, 0.06), (60, 0.06), (70, 0.075), (100, 0.12), (500, 0.15)]
)
def test_words_are_read_less_often_only_where_very_many_speak(answers, beat):
    assert http._batch_seconds(0.06, answers, late=0) == pytest.approx(beat)


async def test_a_server_that_is_behind_reads_less_often_until_it_has_caught_up(
    keeping, monkeypatch
):
    url, _ = keeping
    name = f"openai/{Plan(tokens=200, rate=100).model}"
    rest, pauses = http.StreamingResponse.rest, []

    async def rest_while_the_loop_is_blocked(response, seconds):
        # Lag is measured by the pause that it makes longer, so the block has to be in one.
        if seconds:
            pauses.append(seconds)
            if len(pauses) == 3:
                asyncio.get_running_loop().call_soon(time.sleep, 0.3)
        await rest(response, seconds)

    monkeypatch.setattr(http.StreamingResponse, "rest", rest_while_the_loop_is_blocked)
    reading = asyncio.create_task(ask(DirectModel(base_url=url, batch_seconds=0.03), name))
    beats = []
    while not reading.done():
        await asyncio.sleep(0.01)
        beats.append(http._batch_seconds(0.03, 1, http.StreamingResponse.late))
    said = assemble(await reading)

    assert max(beats) > 0.1
    assert len(stamps(said.content)) == 200
    assert http.StreamingResponse.late == 0


async def test_many_streams_run_side_by_side(keeping):
    url, connected = keeping
    name = f"openai/{Plan(tokens=500, rate=5).model}"
    streams = [DirectModel(base_url=url).stream(model=name, messages=HELLO) for _ in range(120)]
    async with asyncio.timeout(30):
        await asyncio.gather(*map(anext, streams))
    await asyncio.gather(*(stream.aclose() for stream in streams))

    assert len(connected) == 120


def test_every_event_loop_has_its_own_connections_and_leaves_none_open():
    async def once():
        async with WireServer([say("ok")]) as server:
            return assemble(await ask(DirectModel(KEY, server.url))).content

    assert [asyncio.run(once()) for _ in range(2)] == ["ok", "ok"]
    assert http._CLIENTS == {}


@pytest.fixture
async def proxy():
    """A proxy that answers itself, and what it was asked."""
    heads = []

    async def serve(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        answer = event({"content": "by proxy"}, "stop") + DONE
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % len(answer) + answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


async def test_a_proxy_of_the_environment_is_used(proxy, monkeypatch):
    address, heads = proxy
    monkeypatch.setenv("http_proxy", f"http://me:secret@{address}")
    said = assemble(await ask(DirectModel(KEY, "http://models.invalid/v1")))

    assert said.content == "by proxy"
    assert "POST http://models.invalid/v1/chat/completions" in heads[0]
    assert base64.b64encode(b"me:secret").decode() in heads[0]


async def test_a_proxy_is_not_asked_for_this_machine_nor_for_exceptions(proxy, monkeypatch):
    address, heads = proxy
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("no_proxy", "models.invalid")
    async with WireServer([say("ok")]) as server:
        await ask(DirectModel(KEY, server.url))
    with pytest.raises(AgentConnectionError):
        await ask(DirectModel(KEY, "http://models.invalid/v1"))

    assert heads == []


async def test_a_proxy_that_says_no_is_a_failure_to_connect(proxy, monkeypatch):
    address, _ = proxy
    monkeypatch.setenv("https_proxy", f"http://{address}")
    with pytest.raises(AgentError) as caught:
        await ask(DirectModel(KEY, "https://models.invalid/v1"))

    assert isinstance(caught.value, AgentConnectionError)


# Request


CALL = {"id": "call_abc", "type": "function", "function": {"name": "f", "arguments": "{}"}}
THOUGHTFUL = [
    {"role": "user", "content": "?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "Hm."},
    {"role": "tool", "content": "2", "tool_call_id": "call_abc", "name": "f"},
]


async def test_mistral_is_sent_ids_of_nine_letters_and_no_thoughts():
    asked = (await sent_request("mistral/large", messages=THOUGHTFUL)).body["messages"]

    id = asked[2]["tool_call_id"]
    assert asked[1]["tool_calls"][0]["id"] == id
    assert len(id) == 9
    assert id.isalnum()
    assert "reasoning_content" not in asked[1]


async def test_groq_is_sent_no_thoughts_and_deepseek_its_own():
    groq = (await sent_request("groq/llama", messages=THOUGHTFUL)).body["messages"]
    deepseek = (await sent_request("deepseek/v4", messages=THOUGHTFUL)).body["messages"]

    assert groq[1:] == [
        {"role": "assistant", "tool_calls": [CALL]},
        portable_message(THOUGHTFUL[2]),
    ]
    assert deepseek[1]["reasoning_content"] == "Hm."


async def test_groq_is_asked_for_a_form_in_one_piece():
    async with WireServer([framed_reply(json.dumps(WHOLE).encode())]) as server:
        llm = DirectModel(KEY, server.url)
        said = assemble(await ask(llm, "groq/x", response_format={"type": "json_object"}))

    assert said.content == "Hello"
    assert {"stream", "stream_options"}.isdisjoint(server.requests[0].body)


async def test_a_model_that_thinks_is_given_its_limit_under_its_other_name():
    asked = (await sent_request("openai/o3", max_tokens=9, temperature=0.5)).body

    assert asked["max_completion_tokens"] == 9
    assert {"max_tokens", "temperature"}.isdisjoint(asked)


async def test_a_keyword_that_is_refused_may_still_be_the_name_of_a_property():
    schema = {"$id": "x", "type": "object", "properties": {"$id": {"$id": "y", "type": "null"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    asked = (await sent_request("mistral/large", tools=tools)).body["tools"]

    bare = {"type": "object", "properties": {"$id": {"type": "null"}}}
    assert asked[0]["function"]["parameters"] == bare


async def test_a_key_is_sent_where_there_is_one_and_nothing_where_there_is_none():
    assert (await sent_request(MODEL)).headers["authorization"] == f"Bearer {KEY}"
    async with WireServer([say("ok")]) as server:
        await ask(DirectModel(base_url=server.url))

    assert "authorization" not in server.requests[0].headers


async def test_half_a_character_in_the_conversation_does_not_stop_it():
    asked = await sent_request(MODEL, messages=[{"role": "user", "content": "half \ud83d"}])

    assert asked.body["messages"][0]["content"] == "half \ud83d"


async def test_a_long_conversation_is_sent_whole():
    long = [{"role": "user", "content": "長い" * 500_000}]

    assert (await sent_request(MODEL, messages=long)).body["messages"] == long


async def test_the_environment_gives_the_address_and_the_key():
    async with WireServer([say("ok")]) as server:
        environ = {"GROQ_API_BASE": server.url, "GROQ_API_KEY": KEY}
        await ask(DirectModel(environ=environ), "groq/llama")

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_missing_key_is_told_before_anyone_is_asked():
    with pytest.raises(ModelError, match="has no API key"):
        await ask(DirectModel(environ={}), "groq/llama")


# What it cost


def usage(**more):
    told = {**chunk({}), "choices": [], "usage": {**USAGE, **more}}
    return Reply(parts=(chunk({"content": "ok"}, "stop"), told, DONE))


async def test_xai_counts_thoughts_beside_the_answer_and_tells_the_cost_in_ticks():
    thoughts = {"completion_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 22}
    reply = usage(**thoughts, cost_in_usd_ticks=25_000_000)
    said = await turn(reply, "xai/grok-4.7")

    assert said.usage["completion_tokens"] == 11
    assert said.usage["cost"] == 0.0025


async def test_tokens_from_the_providers_cache_cost_less():
    cached = {"prompt_tokens_details": {"cached_tokens": 10}}
    said = await turn(usage(**cached), "openai/gpt-4.1-mini")

    assert said.usage["cost"] == pytest.approx(1 * 0.4e-6 + 10 * 0.1e-6 + 7 * 1.6e-6)


@pytest.mark.parametrize(
    "odd",
    [
        {"prompt_tokens": "many"},
        {"prompt_tokens": None, "completion_tokens_details": {"reasoning_tokens": "x"}},
        {"prompt_tokens": [], "cost": "cheap", "completion_tokens_details": [1]},
    ],
)
async def test_a_usage_that_makes_no_sense_does_not_spoil_the_answer(odd):
    said = await turn(usage(**odd), "openai/gpt-4.1-mini")

    assert said.content == "ok"
    assert "cost" not in said.usage


async def test_details_that_make_no_sense_are_passed_over():
    said = await turn(usage(prompt_tokens_details=[1]), "openai/gpt-4.1-mini")

    assert said.usage["cost"] == pytest.approx(11 * 0.4e-6 + 7 * 1.6e-6)
