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
from agents.llm.direct.direct_model import DirectModel
from agents.llm.wire import http, provider_errors
from agents.llm.wire.http import error_message
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


async def test_a_short_reply_is_requested_in_one_piece():
    reply = framed_reply(json.dumps(WHOLE).encode())
    async with WireServer([reply]) as server:
        llm = DirectModel(KEY, server.url).for_short_reply()
        said = assemble(await ask(llm))

    [request] = server.requests
    assert request.body["stream"] is False
    assert "stream_options" not in request.body
    assert said.content == "Hello"
    assert said.usage["total_tokens"] == USAGE["total_tokens"]


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("indent", [None, 2])
async def test_an_unstreamed_answer_is_read_with_any_content_type(kind, indent):
    body = json.dumps(WHOLE, indent=indent).encode() + b"\n"
    said = await turn(framed_reply(body, kind=kind))

    assert (said.content, said.usage["total_tokens"]) == ("Hello", 18)


async def test_text_that_arrives_together_is_one_chunk_even_before_garbage():
    words = b"".join(event({"content": word}) for word in ("Look", "ing ", "up"))
    reply = Reply(parts=(event({"role": "assistant"}), words + b"data: {garbage\n\n"))
    async with WireServer([reply]) as server:
        chunks = DirectModel(KEY, server.url).stream(model=MODEL, messages=HELLO)
        heard = [await anext(chunks), await anext(chunks)]
        with pytest.raises(ModelError):
            await anext(chunks)

    assert heard[1]["choices"][0]["delta"] == {"content": "Looking up"}


async def test_calls_in_an_unstreamed_answer_are_read():
    function = {"name": "clock", "arguments": "{}"}
    calls = [{"id": f"c{n}", "type": "function", "function": function} for n in range(2)]
    choices = [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "stop"}]
    said = await turn(framed_reply(json.dumps({"choices": choices}).encode()))

    assert [call.id for call in said.tool_calls] == ["c0", "c1"]


async def test_a_compressed_stream_is_decompressed():
    packed = gzip.compress(event({"content": "Hello"}, "stop") + DONE)
    said = await turn(Reply(parts=(packed[:9], packed[9:]), headers=SSE | GZIP))

    assert said.content == "Hello"


GZIP = {"Content-Encoding": "gzip"}


async def test_an_invalid_compressed_stream_is_an_error():
    error = await failure(Reply(parts=(b"not packed at all",), headers=SSE | GZIP))

    assert isinstance(error, AgentConnectionError)


async def test_a_character_split_over_chunks_is_joined():
    whole = event({"content": "日本"}).replace(rb"\u65e5\u672c", "日本".encode())
    at = whole.index("本".encode()) + 1
    said = await turn(Reply(parts=(whole[:at], 0.02, whole[at:], event({}, "stop"), DONE)))

    assert said.content == "日本"


async def test_a_long_gateway_header_is_read():
    said = await turn(framed_reply(json.dumps(WHOLE).encode(), **{"X-Policy": "x" * 30_000}))

    assert said.content == "Hello"


async def test_an_html_page_is_not_an_answer():
    error = await failure(framed_reply(b"<html><title>Log in</title></html>", kind="text/html"))

    assert str(error) == provider_errors.UNREADABLE_RESPONSE.fill(model=repr(MODEL))


async def test_an_endless_line_is_rejected():
    endless = [b"data: ", *[b"x" * 1024 * 1024] * 17]
    error = await failure(Reply(parts=tuple(endless)))

    assert str(error) == provider_errors.UNREADABLE_RESPONSE.fill(model=repr(MODEL))


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
        # OpenRouter, with the error of the provider behind it
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
        # Gemini's OpenAI-compatible API
        ([{"error": {"code": 400, "message": "No.", "status": "INVALID"}}], "No."),
    ],
)
async def test_every_providers_error_message_is_kept(body, words):
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
def test_an_error_that_is_not_json_is_quoted(body, words):
    assert error_message(body) == words


async def test_an_endless_error_body_is_cut(monkeypatch):
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
async def test_an_exceeded_context_window_is_reported(error):
    told = await failure(framed_reply(json.dumps({"error": error}).encode(), 400))

    opening = provider_errors.CHAT_TOO_LONG.quoting.fill(model=repr(MODEL), words="")
    assert str(told).startswith(opening)


# Connections


@pytest.fixture
async def keeping():
    """A server with persistent connections, and their count."""
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


async def test_an_abandoned_connection_is_not_used_again(keeping):
    url, connected = keeping
    name = f"openai/{Plan(tokens=500, rate=200).model}"
    chunks = DirectModel(base_url=url).stream(model=name, messages=HELLO)
    await anext(chunks)
    await chunks.aclose()
    await ask(DirectModel(base_url=url), f"openai/{Plan(tokens=1).model}")

    assert len(connected) == 2


async def test_the_first_token_is_not_batched():
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
def test_the_batch_time_grows_only_with_very_many_streams(answers, beat):
    assert http._batch_seconds(0.06, answers, lag=0) == pytest.approx(beat)


async def test_a_lagging_event_loop_batches_more_until_it_catches_up(keeping, monkeypatch):
    url, _ = keeping
    name = f"openai/{Plan(tokens=200, rate=100).model}"
    rest, pauses = http.StreamingResponse.rest, []

    async def rest_while_the_loop_is_blocked(response, seconds):
        # Lag is measured as an overlong pause, so the loop has to be blocked during one.
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
        beats.append(http._batch_seconds(0.03, 1, http.StreamingResponse.lag))
    said = assemble(await reading)

    assert max(beats) > 0.1
    assert len(stamps(said.content)) == 200
    assert http.StreamingResponse.lag == 0


async def test_many_streams_run_in_parallel(keeping):
    url, connected = keeping
    name = f"openai/{Plan(tokens=500, rate=5).model}"
    streams = [DirectModel(base_url=url).stream(model=name, messages=HELLO) for _ in range(120)]
    async with asyncio.timeout(30):
        await asyncio.gather(*map(anext, streams))
    await asyncio.gather(*(stream.aclose() for stream in streams))

    assert len(connected) == 120


def test_every_event_loop_has_its_own_connections_and_closes_them():
    async def once():
        async with WireServer([say("ok")]) as server:
            return assemble(await ask(DirectModel(KEY, server.url))).content

    assert [asyncio.run(once()) for _ in range(2)] == ["ok", "ok"]
    assert http._CLIENTS == {}


@pytest.fixture
async def proxy():
    """A proxy that answers requests itself and records them."""
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


async def test_a_proxy_from_the_environment_is_used(proxy, monkeypatch):
    address, heads = proxy
    monkeypatch.setenv("http_proxy", f"http://me:secret@{address}")
    said = assemble(await ask(DirectModel(KEY, "http://models.invalid/v1")))

    assert said.content == "by proxy"
    assert "POST http://models.invalid/v1/chat/completions" in heads[0]
    assert base64.b64encode(b"me:secret").decode() in heads[0]


async def test_the_proxy_is_skipped_for_localhost_and_no_proxy_hosts(proxy, monkeypatch):
    address, heads = proxy
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("no_proxy", "models.invalid")
    async with WireServer([say("ok")]) as server:
        await ask(DirectModel(KEY, server.url))
    with pytest.raises(AgentConnectionError):
        await ask(DirectModel(KEY, "http://models.invalid/v1"))

    assert heads == []


async def test_a_proxy_that_refuses_is_a_connection_error(proxy, monkeypatch):
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


async def test_mistral_gets_nine_letter_ids_and_no_reasoning():
    asked = (await sent_request("mistral/large", messages=THOUGHTFUL)).body["messages"]

    id = asked[2]["tool_call_id"]
    assert asked[1]["tool_calls"][0]["id"] == id
    assert len(id) == 9
    assert id.isalnum()
    assert "reasoning_content" not in asked[1]


async def test_groq_gets_no_reasoning_and_deepseek_its_own():
    groq = (await sent_request("groq/llama", messages=THOUGHTFUL)).body["messages"]
    deepseek = (await sent_request("deepseek/v4", messages=THOUGHTFUL)).body["messages"]

    assert groq[1:] == [
        {"role": "assistant", "tool_calls": [CALL]},
        portable_message(THOUGHTFUL[2]),
    ]
    assert deepseek[1]["reasoning_content"] == "Hm."


async def test_groq_structured_output_is_not_streamed():
    async with WireServer([framed_reply(json.dumps(WHOLE).encode())]) as server:
        llm = DirectModel(KEY, server.url)
        said = assemble(await ask(llm, "groq/x", response_format={"type": "json_object"}))

    assert said.content == "Hello"
    assert {"stream", "stream_options"}.isdisjoint(server.requests[0].body)


async def test_a_reasoning_model_gets_max_completion_tokens():
    asked = (await sent_request("openai/o3", max_tokens=9, temperature=0.5)).body

    assert asked["max_completion_tokens"] == 9
    assert {"max_tokens", "temperature"}.isdisjoint(asked)


async def test_an_unsupported_keyword_can_be_a_property_name():
    schema = {"$id": "x", "type": "object", "properties": {"$id": {"$id": "y", "type": "null"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    asked = (await sent_request("mistral/large", tools=tools)).body["tools"]

    bare = {"type": "object", "properties": {"$id": {"type": "null"}}}
    assert asked[0]["function"]["parameters"] == bare


async def test_the_authorization_header_is_sent_only_with_a_key():
    assert (await sent_request(MODEL)).headers["authorization"] == f"Bearer {KEY}"
    async with WireServer([say("ok")]) as server:
        await ask(DirectModel(base_url=server.url))

    assert "authorization" not in server.requests[0].headers


async def test_a_lone_surrogate_in_the_conversation_is_sent():
    asked = await sent_request(MODEL, messages=[{"role": "user", "content": "half \ud83d"}])

    assert asked.body["messages"][0]["content"] == "half \ud83d"


async def test_a_long_conversation_is_sent_whole():
    long = [{"role": "user", "content": "長い" * 500_000}]

    assert (await sent_request(MODEL, messages=long)).body["messages"] == long


async def test_url_and_key_come_from_the_environment():
    async with WireServer([say("ok")]) as server:
        environ = {"GROQ_API_BASE": server.url, "GROQ_API_KEY": KEY}
        await ask(DirectModel(environ=environ), "groq/llama")

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_missing_key_is_an_error_before_any_request():
    with pytest.raises(ModelError, match="has no API key"):
        await ask(DirectModel(environ={}), "groq/llama")


# Usage and cost


def usage(**more):
    told = {**chunk({}), "choices": [], "usage": {**USAGE, **more}}
    return Reply(parts=(chunk({"content": "ok"}, "stop"), told, DONE))


async def test_xai_reports_reasoning_tokens_separately_and_cost_in_ticks():
    thoughts = {"completion_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 22}
    reply = usage(**thoughts, cost_in_usd_ticks=500_000)
    said = await turn(reply, "xai/grok-4.7")

    assert said.usage["completion_tokens"] == 11
    assert said.usage["cost"] == 0.00005


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
async def test_invalid_usage_does_not_lose_the_answer(odd):
    said = await turn(usage(**odd), "openai/gpt-4.1-mini")

    assert said.content == "ok"
    assert "cost" not in said.usage


async def test_invalid_usage_details_are_ignored():
    said = await turn(usage(prompt_tokens_details=[1]), "openai/gpt-4.1-mini")

    assert said.usage["cost"] == pytest.approx(11 * 0.4e-6 + 7 * 1.6e-6)
