"""What both routes to a model guarantee: the same request, turn and errors."""

import asyncio
import json
import time
from dataclasses import replace
from email.utils import formatdate

import pytest

from agents.engine.errors import (
    AgentConnectionError,
    AgentError,
    EmptyReply,
    ModelError,
    ModelTimeout,
    ModelTooSlow,
    ProviderFailed,
    RateLimited,
)
from agents.engine.planner import reply_readers
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.planner.stream_batches import Deadlines
from agents.engine.resilience.circuit_breaker import CircuitPolicy, Circuits
from agents.engine.state import AgentState
from agents.engine.turn.assembly import assemble
from agents.llm import model_info
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel, warm_up
from agents.llm.parameters.model_names import full_name, provider_of
from agents.llm.providers import PROVIDERS
from agents.llm.wire import provider_errors
from tests.sampling import one_in
from tests.wire import (
    HANG,
    USAGE,
    Reply,
    WireServer,
    call,
    chunk,
    closed_port,
    cut,
    fail,
    flood,
    hang,
    say,
    silent_port,
    spoil,
)

# LiteLLM's own types and code cause both warnings with its first chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

KEY = "sk-very-secret-key-0123456789"
MODEL = "openai/wire"
HELLO = [{"role": "user", "content": "hello"}]
PARAMETERS = {"type": "object", "properties": {"sum": {"type": "string"}}}
FUNCTION = {"name": "calculator", "description": "Sums.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": FUNCTION}]


@pytest.fixture(params=[DirectModel, LiteLLMModel], ids=["direct", "litellm"])
def route(request):
    return request.param


async def ask(llm, model=MODEL, messages=HELLO, **request):
    return [c async for c in llm.stream(model=model, messages=messages, **request)]


async def turn(route, reply, **request):
    async with WireServer([reply]) as server:
        return assemble(await ask(route(KEY, server.url), **request))


async def failure(route, reply, **options):
    async with WireServer([reply]) as server:
        with pytest.raises(AgentError) as caught:
            await ask(route(KEY, server.url, **options))
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


def planner(route, server, **options):
    return ReActPlanner(route(KEY, server.url), MODEL, **options)


async def test_text_arrives_unchanged(route):
    said = await turn(route, say("こんにちは、 world", chunks=7))

    assert (said.content, said.finish_reason) == ("こんにちは、 world", "stop")
    assert said.usage["total_tokens"] == USAGE["total_tokens"]


async def test_reasoning_is_separated_from_the_answer(route):
    said = await turn(route, say("Hello", reasoning="Let me see."))

    assert (said.content, said.reasoning) == ("Hello", "Let me see.")
    assert said.kept == {"reasoning_content": "Let me see."}


async def test_fragmented_calls_are_assembled(route):
    said = await turn(route, call(("calculator", '{"sum": "1+1"}'), ("clock", "{}")))

    calls = [(c.id, c.name, c.input) for c in said.tool_calls]
    assert calls == [("call_0", "calculator", {"sum": "1+1"}), ("call_1", "clock", {})]
    assert said.finish_reason == "tool_calls"


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "tired"])
async def test_the_providers_finish_reason_is_kept(route, finish):
    said = await turn(route, say("ok", finish=finish))

    assert (said.content, said.finish_reason) == ("ok", finish)


async def test_an_answer_that_was_not_streamed_is_read(route):
    message = {"role": "assistant", "content": "Hello", "reasoning_content": "Hm."}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    whole = json.dumps({"id": "1", "choices": choices, "usage": USAGE}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(whole))}
    said = await turn(route, Reply(parts=(whole,), headers=headers))

    assert (said.content, said.reasoning, said.finish_reason) == ("Hello", "Hm.", "stop")
    assert said.usage["prompt_tokens"] == 11


async def test_an_empty_answer_is_a_failure_that_can_be_retried(route):
    async with WireServer([say("")]) as server:
        with pytest.raises(EmptyReply):
            await planner(route, server).plan("?", AgentState(), [])


async def test_a_withheld_answer_is_reported_as_withheld(route):
    async with WireServer([say("", finish="content_filter")]) as server:
        with pytest.raises(ModelError, match=reply_readers.WITHHELD):
            await planner(route, server).plan("?", AgentState(), [])


async def test_the_cost_is_returned_when_the_price_is_known(route):
    async with WireServer([say("ok")]) as server:
        chunks = await ask(route(KEY, server.url), "openai/gpt-4.1-mini")

    assert assemble(chunks).usage["cost"] == pytest.approx(11 * 0.4e-6 + 7 * 1.6e-6)


async def test_an_unknown_price_is_not_zero(route):
    assert "cost" not in (await turn(route, say("ok"))).usage


async def test_a_cost_reported_by_the_provider_is_used(route):
    told = {**chunk({}), "choices": [], "usage": {**USAGE, "cost": 0.25}}
    said = await turn(route, Reply(parts=(chunk({"content": "ok"}, "stop"), told)))

    assert said.usage["cost"] == 0.25


@pytest.mark.parametrize("size", [1_000, pytest.param(50_000, marks=pytest.mark.thorough)])
async def test_very_many_chunks_are_read_to_the_end(route, size):
    said = await turn(route, flood(size))

    assert len(said.content) == size


@pytest.mark.parametrize(
    ("status", "words", "kind", "sentence"),
    [
        (400, "Bad tools", ModelError, provider_errors.REQUEST_REJECTED),
        (400, "maximum context length is 9", ModelError, provider_errors.CHAT_TOO_LONG),
        (401, f"Bad key {KEY}", ModelError, provider_errors.KEY_REJECTED),
        (403, "Not for you", ModelError, provider_errors.KEY_REJECTED),
        (404, "No such model", ModelError, provider_errors.MODEL_NOT_FOUND),
        (429, "Slow down", RateLimited, provider_errors.RATE_LIMITED),
        (500, "Oh no", ProviderFailed, provider_errors.PROVIDER_ERROR),
        (503, "Busy", ProviderFailed, provider_errors.PROVIDER_ERROR),
        (529, "Overloaded", ProviderFailed, provider_errors.PROVIDER_ERROR),
    ],
)
async def test_an_error_status_becomes_a_clear_message(route, status, words, kind, sentence):
    error = await failure(route, fail(status, words))

    assert type(error) is kind
    assert str(error) == sentence.fill(MODEL, words.replace(KEY, "***"), status)


@pytest.mark.parametrize("status", [408, 504])
async def test_a_provider_timeout_is_reported_as_a_timeout(route, status):
    error = await failure(route, fail(status, "Late"))

    assert type(error) is ModelTimeout
    assert str(error) == provider_errors.NO_RESPONSE.fill(model=repr(MODEL))


@pytest.mark.parametrize("as_date", [False, True])
async def test_a_rate_limit_says_how_long_to_wait(route, as_date):
    wait = formatdate(time.time() + 3600, usegmt=True) if as_date else "3600"
    error = await failure(route, fail(429, "Slow down", Retry_After=wait))

    assert error.retry_after == pytest.approx(3600, abs=60)


async def test_a_rate_limit_without_a_time_says_none(route):
    error = await failure(route, fail(429, "Slow down"))

    assert error.retry_after is None
    assert error.advice == "Try again later, or choose another model."


async def test_an_error_in_mid_stream_is_reported(route):
    event = f'data: {{"error": {{"message": "boom {KEY}", "code": 503}}}}\n\n'.encode()
    error = await failure(route, spoil(say("one two", chunks=2), event, after=1))

    assert type(error) is ProviderFailed
    assert "boom ***" in str(error)


async def test_a_refused_connection_names_the_address(route):
    port = closed_port()
    with pytest.raises(AgentConnectionError) as caught:
        await ask(route(KEY, f"http://127.0.0.1:{port}/v1"))

    assert str(caught.value) == provider_errors.NOT_CONNECTED.fill(
        model=f"{MODEL!r} at 127.0.0.1:{port}",
        reason=provider_errors.UNREACHABLE_REASONS["ConnectError"],
    )


async def test_an_unknown_host_is_reported(route):
    with pytest.raises(AgentConnectionError, match="at nowhere.invalid:80: the host name"):
        await ask(route(KEY, "http://nowhere.invalid/v1"))


async def test_a_port_without_tls_is_reported(route):
    async def answer(reader, writer):
        writer.write(b"this is not TLS\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        with pytest.raises(AgentConnectionError, match="the TLS connection failed"):
            await ask(route(KEY, address))


async def test_a_hanging_handshake_is_a_connection_error(route):
    async with silent_port() as port:
        llm = route(KEY, f"https://127.0.0.1:{port}/v1", connect_timeout=0.3)
        with pytest.raises(AgentConnectionError, match="the connection timed out"):
            await ask(llm)


@pytest.mark.parametrize("after", [0, 2])
async def test_a_truncated_answer_is_a_connection_error(route, after):
    error = await failure(route, cut(say("one two three", chunks=3), after=after))

    assert type(error) is AgentConnectionError
    assert str(error) == provider_errors.ANSWER_CUT_OFF.fill(model=repr(MODEL))


async def test_an_answer_without_a_finish_reason_was_cut_off(route):
    error = await failure(route, Reply(parts=say("one two", chunks=2).parts[:2]))

    assert str(error) == provider_errors.ANSWER_CUT_OFF.fill(model=repr(MODEL))


async def test_a_disconnect_after_the_finish_reason_loses_nothing(route):
    said = await turn(route, cut(say("one two", chunks=2), after=3))

    assert (said.content, said.finish_reason) == ("one two", "stop")


async def test_a_connection_left_open_does_not_delay_the_answer(route):
    said = await asyncio.wait_for(turn(route, hang(say("one two", chunks=2), after=5)), 30)

    assert said.content == "one two"


@pytest.mark.parametrize("after", [0, 1])
async def test_silence_ends_with_the_timeout(route, after):
    error = await failure(route, hang(say("one two", chunks=2), after=after), timeout=0.3)

    assert type(error) is ModelTimeout
    assert str(error) == provider_errors.NO_RESPONSE.fill(model=repr(MODEL))


async def test_a_missing_first_chunk_times_out_and_closes_the_connection(route):
    async with WireServer([Reply(parts=(HANG,))]) as server:
        asking = planner(route, server, deadlines=Deadlines(first=0.3))
        with pytest.raises(ModelTimeout, match="sent nothing for 0.3 s"):
            await asking.plan("?", AgentState(), [])

        await asyncio.wait_for(server.left(), 1)


async def test_a_server_that_reads_its_prompt_is_waited_for():
    comments = (0.25, b": reading\n\n") * 5
    whole = say("one two", chunks=2)
    async with WireServer([replace(whole, parts=(*comments, *whole.parts))]) as server:
        asking = planner(DirectModel, server, deadlines=Deadlines(first=1, between=0.2))
        plan = await asking.plan("?", AgentState(), [])

    assert plan.final_answer == "one two"


async def test_a_timeout_of_a_server_that_is_sending_does_not_open_its_circuit():
    circuits = Circuits(CircuitPolicy(failures=1))
    comments = (0.05, b": reading\n\n") * 50
    async with WireServer([Reply(parts=comments)]) as server:
        asking = planner(DirectModel, server, deadlines=Deadlines(first=5, whole=0.6))
        with pytest.raises(ModelTooSlow) as error, circuits.guard("local", "some"):
            await asking.plan("?", AgentState(), [])

    assert "Timeout for a whole answer" in error.value.advice
    assert not circuits.are_refusing("local", "some")


@pytest.mark.parametrize(
    "garbage", [b"{oops", b"[1, 2]", b'{"choices": ["x"]}', b'{"choices": [{"delta": "x"}]}']
)
async def test_garbage_in_the_stream_is_a_model_error(route, garbage):
    event = b"data: %b\n\n" % garbage
    error = await failure(route, spoil(say("one two", chunks=2), event, after=1))

    assert type(error) is ModelError
    assert str(error) == provider_errors.UNREADABLE_RESPONSE.fill(model=repr(MODEL))


async def test_invalid_utf8_is_replaced_without_ending_the_answer(route):
    garbage = b'data: {"choices":[{"index":0,"delta":{"content":"\xff!"}}]}\n\n'
    said = await turn(route, spoil(say("ab", chunks=2), garbage, after=1))

    assert said.content == "a\ufffd!b"


async def test_comments_and_other_sse_fields_are_skipped(route):
    between = b": OPENROUTER PROCESSING\r\n\r\nevent: x\r\nid: 7\r\nretry: 1\r\n\r\n"
    said = await turn(route, spoil(say("ab", chunks=2), between, after=1))

    assert said.content == "ab"


async def test_a_chunk_of_five_megabytes_arrives_whole(route):
    assert len((await turn(route, say("x" * 5_000_000))).content) == 5_000_000


async def test_closing_the_stream_closes_the_connection(route):
    async with WireServer([hang(say("one two", chunks=2), after=1)]) as server:
        chunks = route(KEY, server.url).stream(model=MODEL, messages=HELLO)
        await anext(chunks)
        await chunks.aclose()

        await asyncio.wait_for(server.left(), 1)


@pytest.mark.parametrize("after", [0, 1])
async def test_cancelling_the_run_closes_the_connection(route, after):
    async with WireServer([hang(say("one two", chunks=2), after=after)]) as server:
        asking = asyncio.create_task(ask(route(KEY, server.url)))
        await asyncio.wait_for(server.asked(), 30)
        asking.cancel()

        await asyncio.wait_for(server.left(), 1)
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_failed_request_is_not_repeated(route):
    async with WireServer([fail(500, "Oh no"), say("ok")]) as server:
        with pytest.raises(ModelError):
            await ask(route(KEY, server.url))

    assert len(server.requests) == 1


async def test_an_environment_key_is_not_sent_to_a_custom_url(route, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with WireServer([say("ok")]) as server:
        await ask(route(base_url=server.url))

    assert KEY not in json.dumps(dict(server.requests[0].headers))


def test_no_route_reveals_its_key(route):
    assert KEY not in repr(route(KEY, "http://x/v1"))


# Requests, in each provider's format.

HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call12345",
                "type": "function",
                "function": {"name": "calculator", "arguments": "{}"},
            }
        ],
    },
    {"role": "tool", "content": "2", "tool_call_id": "call12345"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "and?"},
]
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": PARAMETERS}}
SCHEMA = {**PARAMETERS, "$schema": "http://json-schema.org/draft-07/schema#"}
STRICT = [{"type": "function", "function": FUNCTION | {"parameters": SCHEMA}}]
REQUESTS = {
    "tools": {"tools": STRICT, "max_tokens": 9, "tool_choice": "required", "seed": 1},
    "text": {"max_tokens": 9, "stop": ["\nObservation:"], "temperature": 0.5, "top_p": 0.5},
    "form": {"max_tokens": 9, "response_format": FORM},
}
MODELS = [
    "openai/my-own",
    "openai/gpt-4.1",
    "openai/gpt-5",
    "openrouter/meta-llama/llama-4",
    "mistral/mistral-large-4",
    "groq/openai/gpt-oss-120b",
    "deepseek/deepseek-v4-pro",
    "xai/grok-3",
    "xai/grok-4.7",
    "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo",
    "cerebras/gpt-oss-120b",
    "nvidia_nim/meta/llama3-70b-instruct",
    "nebius/some",
    "litellm_proxy/some",
    "hosted_vllm/some",
    "lm_studio/some",
    "llamafile/some",
]


async def sent_request(route, model, request):
    """Return what a provider is sent; the reply isn't streamed unless requested."""

    def answer(request):
        if request.body.get("stream"):
            return say("ok")
        choices = [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}]
        whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "wire"}
        told = {**whole, "choices": choices, "usage": USAGE, "service_tier": "on_demand"}
        body = json.dumps(told).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return Reply(parts=(body,), headers=headers)

    async with WireServer(answer) as server:
        fresh = json.loads(json.dumps({"messages": HISTORY, **request}))
        chunks = await ask(route(KEY, server.url), model, **fresh)
    assert assemble(chunks).content == "ok"
    return server.requests[-1]


@pytest.mark.parametrize("request_", one_in(3, REQUESTS.values()), ids=REQUESTS)
@pytest.mark.parametrize("model", MODELS)
async def test_both_routes_send_the_same_request(model, request_):
    direct = await sent_request(DirectModel, model, request_)
    litellm = await sent_request(LiteLLMModel, model, request_)

    if not direct.body.get("stream"):
        litellm.body.pop("stream_options", None)  # has no effect without streaming
    assert direct.body == litellm.body
    assert direct.path == litellm.path
    assert direct.headers["authorization"] == litellm.headers["authorization"]


async def test_every_known_provider_is_covered_by_these_tests():
    tried = {model.partition("/")[0] for model in MODELS}
    # LiteLLM uses Ollama's own protocol.
    spoken = {p.prefix for p in PROVIDERS if p.speaks_openai} - {"ollama", "ollama_chat"}

    assert tried == spoken


async def test_urls_and_key_variables_match_litellm(monkeypatch):
    litellm = await asyncio.wrap_future(warm_up())
    # LiteLLM has no URL for these, or has it elsewhere.
    others = {"openai", "openrouter", "lm_studio", "ollama", "ollama_chat"}
    for provider in PROVIDERS:
        if provider.speaks_openai and provider.base_url and provider.prefix not in others:
            monkeypatch.setenv(provider.keys[0], KEY)
            _, prefix, key, address = litellm.get_llm_provider(f"{provider.prefix}/some")
            assert (prefix, key) == (provider.prefix, KEY)
            assert address == provider.base_url


OTHER_APIS = {"anthropic", "gemini", "bedrock", "vertex_ai"}
LISTED = [
    name
    for listed, known in model_info._load_table().items()
    if known.get("mode") == "chat"
    and (provider := provider_of(name := full_name(listed)))
    and (provider.speaks_openai or provider.prefix in OTHER_APIS)
]
USED = [
    {"prompt_tokens": 1000, "completion_tokens": 500},
    {"prompt_tokens": 200_000, "completion_tokens": 5},
    {
        "prompt_tokens": 300_000,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 50},
    },
]


@pytest.mark.parametrize("name", ["gpt-4.1", "amazon.nova-pro-v1:0"])
def test_a_name_alone_has_the_price_of_its_provider(name):
    assert model_info.price(name) == model_info.price(full_name(name)) is not None


# LiteLLM's types for Bedrock, when they are imported.
@pytest.mark.filterwarnings("ignore:Items .* are using the `ReadOnly`:UserWarning")
@pytest.mark.parametrize("usage", one_in(3, USED), ids=["short", "at a limit", "cached"])
async def test_costs_match_litellm(usage):
    litellm = await asyncio.wrap_future(warm_up())
    total = usage["prompt_tokens"] + usage["completion_tokens"]

    assert len(LISTED) > 300
    for model in LISTED:
        price = model_info.price(model, usage["prompt_tokens"])
        used = litellm.Usage(**usage, total_tokens=total)
        theirs = sum(litellm.cost_per_token(model=model, usage_object=used))
        assert (price.of(usage) if price else 0) == pytest.approx(theirs), model
