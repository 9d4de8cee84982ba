"""Model servers that people run, each with its quirks on the wire.

A row per server for tools, reasoning, usage, errors and images. What both routes do alike with
any server is in `test_contract`; what their refusals mean is in `test_error_causes`.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.engine.errors import AgentError, ModelError
from agents.engine.turn.assembly import assemble
from agents.llm.direct.direct_model import DirectModel
from agents.llm.discovery.model_probe import solid_png
from agents.llm.litellm_model import LiteLLMModel
from tests.llm import ollama_wire
from tests.wire import DONE, LINES, SSE, Reply, WireServer, chunk, say

pytestmark = [
    pytest.mark.filterwarnings("ignore:Items? '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

IMAGE = base64.b64encode(solid_png("red")).decode()
HELLO = [{"role": "user", "content": "hello"}]
LOOK = [
    {"type": "text", "text": "Which colour?"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}},
]
FUNCTION = {"name": "calculator", "description": "Sums.", "parameters": {"type": "object"}}
TOOLS = [{"type": "function", "function": FUNCTION}]
CALLED = [("calculator", {"sum": "1+1"}), ("clock", {})]
COUNTS = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
FAILED = "The server ran out of memory."


def fragment(index, name="", arguments="", **more):
    named = {"name": name} if name else {}
    return {"index": index, **more, "function": {**named, "arguments": arguments}}


def calls(*fragments):
    return chunk({"tool_calls": list(fragments)})


def last(**usage: Any) -> dict[str, Any]:
    """The chunk after the finish reason, which has nothing but the usage."""
    return {**chunk({}), "choices": [], "usage": {**COUNTS, **usage}}


def event(body: Any, name: bytes = b"data") -> bytes:
    return b"%b: %b\n\n" % (name, json.dumps(body).encode())


def openai_image(body):
    return body["messages"][-1]["content"][-1]["image_url"]["url"].partition(",")[2]


def ollama_image(body):
    assert body["messages"][-1]["content"] == "Which colour?"
    return body["messages"][-1]["images"][0]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server's replies in each case, and the path of its requests."""

    model: str
    tools: tuple[Any, ...]
    reasoning: tuple[Any, ...]
    failure: tuple[Any, ...]
    usage: dict[str, Any] = field(default_factory=lambda: COUNTS)
    path: str = "/v1/chat/completions"
    headers: Any = field(default_factory=lambda: SSE)
    image: Callable[[Any], str] = openai_image
    address: Callable[[WireServer], str] = lambda server: server.url
    is_direct_only: bool = False  # LiteLLM uses another path

    def reply(self, parts):
        return Reply(parts=parts, headers=self.headers)


FIRST = chunk({"role": "assistant", "content": ""})
NULL = chunk({"role": "assistant", "content": None})
END = chunk({}, "stop")
TOOLS_END = chunk({}, "tool_calls")
COMMENT = b": OPENROUTER PROCESSING\n\n"
OLLAMA_END = {
    **ollama_wire.line(),
    "done": True,
    "done_reason": "stop",
    "total_duration": 5_000_000,
    "prompt_eval_count": 11,
    "eval_count": 7,
}
OLLAMA = Server(
    model="ollama_chat/wire",
    # Whole calls with objects as arguments and without ids, and `stop` as their reason.
    tools=(
        ollama_wire.line(tool_calls=[ollama_wire.call("calculator", sum="1+1")]),
        ollama_wire.line(tool_calls=[ollama_wire.call("clock")]),
        OLLAMA_END,
    ),
    reasoning=(
        ollama_wire.line(thinking="Let me"),
        ollama_wire.line(thinking=" see."),
        ollama_wire.line(content="Hello"),
        OLLAMA_END,
    ),
    failure=(ollama_wire.line(content="Hel"), {"error": FAILED}),
    path="/api/chat",
    headers=LINES,
    image=ollama_image,
    address=ollama_wire.address,
)
SERVERS = {
    "Ollama": OLLAMA,
    "Ollama's OpenAI endpoint": Server(
        model="ollama/wire",
        tools=(
            calls(fragment(0, "calculator", '{"sum":"1+1"}', id="call_x1", type="function")),
            calls(fragment(1, "clock", "{}", id="call_x2", type="function")),
            TOOLS_END,
            last(),
            DONE,
        ),
        reasoning=(
            chunk({"role": "assistant", "content": "", "reasoning": "Let me"}),
            chunk({"role": "assistant", "content": "", "reasoning": " see."}),
            chunk({"role": "assistant", "content": "Hello"}),
            END,
            last(),
            DONE,
        ),
        failure=(FIRST, event({"error": {"message": FAILED, "type": "api_error"}})),
        is_direct_only=True,
    ),
    "vLLM": Server(
        model="hosted_vllm/wire",
        # An empty content first, names and arguments apart, usage in every chunk on request.
        tools=(
            FIRST,
            calls(fragment(0, "calculator", id="chatcmpl-tool-1", type="function")),
            calls(fragment(0, arguments='{"sum":')),
            calls(fragment(0, arguments=' "1+1"}')),
            calls(fragment(1, "clock", "{}", id="chatcmpl-tool-2", type="function")),
            TOOLS_END,
            last(),
            DONE,
        ),
        reasoning=(
            FIRST,
            chunk({"reasoning": "Let me", "reasoning_content": "Let me"}),
            chunk({"reasoning": " see.", "reasoning_content": " see."}),
            chunk({"content": "Hello"}),
            END,
            last(prompt_tokens_details={"cached_tokens": 4}),
            DONE,
        ),
        failure=(
            FIRST,
            event({"error": {"message": FAILED, "type": "InternalServerError", "code": 500}}),
            DONE,
        ),
        usage={**COUNTS, "prompt_tokens_details": {"cached_tokens": 4}},
    ),
    "LM Studio": Server(
        model="lm_studio/wire",
        # Calls without an id in later fragments, and an error as an event of its own name.
        tools=(
            calls(fragment(0, "calculator", id="365174485", type="function")),
            calls(fragment(0, arguments='{"sum":"1+1"}')),
            calls(fragment(1, "clock", id="365174486", type="function")),
            calls(fragment(1, arguments="{}")),
            TOOLS_END,
            last(),
            DONE,
        ),
        reasoning=(
            chunk({"role": "assistant", "reasoning_content": "Let me"}),
            chunk({"role": "assistant", "reasoning_content": " see."}),
            chunk({"role": "assistant", "content": "Hello"}),
            END,
            last(),
            DONE,
        ),
        failure=(
            chunk({"role": "assistant", "content": "Hel"}),
            b"event: error\n" + event({"error": {"message": FAILED}}),
        ),
    ),
    "llama.cpp": Server(
        model="llamafile/wire",
        # A null content first; arguments begin with the name; timings beside the usage.
        tools=(
            NULL,
            calls(fragment(0, "calculator", "{", id="aB3", type="function")),
            calls(fragment(0, arguments='"sum":"1+1"}')),
            calls(fragment(1, "clock", "{}", id="aB4", type="function")),
            TOOLS_END,
            {**last(), "timings": {"prompt_n": 11, "predicted_n": 7}},
            DONE,
        ),
        reasoning=(
            NULL,
            chunk({"reasoning_content": "Let me"}),
            chunk({"reasoning_content": " see."}),
            chunk({"content": "Hello"}),
            END,
            {**last(), "timings": {"prompt_n": 11, "predicted_n": 7}},
            DONE,
        ),
        failure=(
            NULL,
            event({"code": 500, "message": FAILED, "type": "server_error"}, b"error"),
        ),
    ),
    "LiteLLM proxy": Server(
        model="litellm_proxy/wire",
        # A call without an index, and errors in the words of the library behind it.
        tools=(
            calls(fragment(0, "calculator", '{"sum":"1+1"}', id="toolu_1", type="function")),
            calls({**fragment(1, "clock", "{}", id="toolu_2"), "index": None}),
            TOOLS_END,
            last(),
            DONE,
        ),
        reasoning=(
            chunk({"reasoning_content": "Let me", "thinking_blocks": None}),
            chunk({"reasoning_content": " see."}),
            chunk({"content": "Hello"}),
            END,
            last(),
            DONE,
        ),
        failure=(
            chunk({"content": "Hel"}),
            event(
                {
                    "error": {
                        "message": f"litellm.APIError: APIError: OpenAIException - {FAILED}",
                        "type": None,
                        "param": None,
                        "code": "500",
                    }
                }
            ),
        ),
    ),
    "OpenRouter": Server(
        model="openrouter/x/y",
        # Comments until the model begins, details beside the reasoning, and the cost.
        tools=(
            COMMENT,
            COMMENT,
            chunk({"role": "assistant", "content": None, "reasoning": None}),
            calls(fragment(0, "calculator", id="toolu_1", type="function")),
            calls(fragment(0, arguments='{"sum":"1+1"}')),
            COMMENT,
            calls(fragment(1, "clock", "", id="toolu_2", type="function")),
            chunk({"role": "assistant", "content": ""}, "tool_calls"),
            last(cost=0.00014),
            DONE,
        ),
        reasoning=(
            COMMENT,
            chunk(
                {
                    "role": "assistant",
                    "content": "",
                    "reasoning": "Let me",
                    "reasoning_details": [{"type": "reasoning.text", "text": "Let me"}],
                }
            ),
            chunk(
                {
                    "content": "",
                    "reasoning": " see.",
                    "reasoning_details": [{"type": "reasoning.text", "text": " see."}],
                }
            ),
            chunk({"content": "Hello"}),
            chunk({"content": ""}, "stop"),
            last(cost=0.00014, cost_details={"upstream_inference_cost": None}),
            DONE,
        ),
        failure=(
            COMMENT,
            chunk({"content": "Hel"}),
            {
                **chunk({"content": ""}, "error"),
                "error": {"code": 502, "message": FAILED, "metadata": {"provider_name": "X"}},
            },
        ),
        usage={**COUNTS, "cost": 0.00014},
    ),
}
ROUTES = [
    pytest.param(server, route, id=f"{name}, {route.route}")
    for name, server in SERVERS.items()
    for route in (DirectModel, LiteLLMModel)
    if route is DirectModel or not server.is_direct_only
]


async def ask(server, route, parts, messages=HELLO, **request):
    async with WireServer([server.reply(parts)]) as wire:
        llm = route("sk-of-this-test", server.address(wire))
        asked = llm.stream(model=server.model, messages=messages, **request)
        turn = assemble([piece async for piece in asked])
    [sent] = wire.requests
    assert sent.path == server.path
    return turn, sent.body


@pytest.mark.parametrize(("server", "route"), ROUTES)
async def test_tools_are_offered_and_their_calls_arrive_whole(server, route):
    turn, body = await ask(server, route, server.tools, tools=TOOLS)

    assert [(call.name, call.input) for call in turn.tool_calls] == CALLED
    assert len({call.id for call in turn.tool_calls}) == 2
    assert [tool["function"]["name"] for tool in body["tools"]] == ["calculator"]


@pytest.mark.parametrize(("server", "route"), ROUTES)
async def test_reasoning_is_separated_from_the_answer(server, route):
    turn, _ = await ask(server, route, server.reasoning)

    assert (turn.reasoning, turn.content) == ("Let me see.", "Hello")
    assert turn.finish_reason == "stop"


@pytest.mark.parametrize(("server", "route"), ROUTES)
async def test_usage_is_read_in_the_servers_format(server, route):
    turn, _ = await ask(server, route, server.reasoning)

    usage = turn.usage or {}
    assert {name: usage.get(name) for name in COUNTS} == COUNTS
    assert usage.get("cost") == server.usage.get("cost")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    assert cached == server.usage.get("prompt_tokens_details", {}).get("cached_tokens")


@pytest.mark.parametrize(("server", "route"), ROUTES)
async def test_a_failure_in_mid_stream_has_the_servers_message(server, route):
    with pytest.raises(AgentError) as caught:
        await ask(server, route, server.failure)

    assert isinstance(caught.value, ModelError)
    assert str(caught.value).endswith(f": {FAILED}")


@pytest.mark.parametrize(("server", "route"), ROUTES)
async def test_an_image_is_sent_in_the_servers_format(server, route):
    image = [{"role": "user", "content": LOOK}]
    _, body = await ask(server, route, server.reasoning, messages=image)

    assert server.image(body) == IMAGE


@pytest.mark.parametrize("route", [DirectModel, LiteLLMModel], ids=["direct", "litellm"])
async def test_missing_usage_is_not_a_failure(route):
    silent = Server(model="lm_studio/wire", tools=(), reasoning=say("Hi").parts[:2], failure=())
    turn, _ = await ask(silent, route, silent.reasoning)

    assert (turn.content, turn.usage) == ("Hi", None)


async def test_ollama_gets_history_and_settings_in_its_own_format():
    function = {"name": "calculator", "arguments": '{"sum": "1+1"}'}
    history = [
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm.",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "2", "tool_call_id": "c1"},
    ]
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    settings = {"num_ctx": 8192, "keep_alive": "5m", "think": True}
    async with WireServer([OLLAMA.reply(OLLAMA.reasoning)]) as wire:
        llm = DirectModel(base_url=OLLAMA.address(wire), parameters=settings)
        asked = llm.stream(
            model="ollama/wire",
            messages=history,
            max_tokens=9,
            stop="\n",
            temperature=0.5,
            response_format=form,
        )
        [_ async for _ in asked]

    assert wire.requests[0].body == {
        "model": "wire",
        "stream": True,
        "messages": [
            {"role": "user", "content": "hello"},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm.",
                "tool_calls": [
                    {"function": {"name": "calculator", "arguments": {"sum": "1+1"}}}
                ],
            },
            {"role": "tool", "content": "2", "tool_name": "calculator"},
        ],
        "think": True,
        "keep_alive": "5m",
        "format": schema,
        "options": {"num_ctx": 8192, "num_predict": 9, "stop": ["\n"], "temperature": 0.5},
    }


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_ollama_lines_can_be_split_anywhere(size):
    lines = b"".join(json.dumps(part).encode() + b"\n" for part in OLLAMA.reasoning)
    pieces = tuple(lines[at : at + size] for at in range(0, len(lines), size))
    turn, _ = await ask(OLLAMA, DirectModel, pieces)

    assert (turn.reasoning, turn.content, turn.usage) == ("Let me see.", "Hello", COUNTS)


async def test_an_ollama_answer_without_done_was_cut_off():
    with pytest.raises(AgentError, match="was cut off"):
        await ask(OLLAMA, DirectModel, OLLAMA.reasoning[:-1])
