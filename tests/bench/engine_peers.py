"""Seven implementations of the same run; this process measures one of them on request."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import orjson

from agents.engine import AgentRuntime, FallbackStrategy, Guardrails, ReActPlanner, ToolRegistry
from agents.engine.planner.react_planner import LLM
from agents.engine.tool import specification
from agents.llm import tokens
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel, warm_up
from agents.tools.calculator import CalculatorTool, calculate
from tests.bench.fake_llm import Plan, call_deltas, stamps, turn_of

PLAN = Plan(steps=3, tokens=200)
MODEL = f"openai/{PLAN.model}"
QUERY = "What is 1+1? Use the calculator."
SYSTEM = "You are a helpful assistant."
TOOLS = [specification(CalculatorTool())]
# LiteLLM writes logs after the reply, which is part of a run's cost.
AFTERMATH = 0.3

AS_IT_COMES = "by hand, LiteLLM as it comes"
Peer = Callable[[], Awaitable[str]]
Deltas = Callable[[list[dict[str, Any]]], AsyncIterator[dict[str, Any]]]


async def by_hand(deltas: Deltas) -> str:
    """Run the bare loop: no events, no limits, no guardrails."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUERY}]
    while True:
        text, calls = [], {}
        async for delta in deltas(messages):
            text.append(delta.get("content") or "")
            for part in delta.get("tool_calls") or ():
                _take(calls.setdefault(part["index"], {"arguments": ""}), part)
        if not calls:
            return "".join(text)
        messages += _exchange(calls.values())


def _take(call: dict[str, str], part: dict[str, Any]) -> None:
    call["id"] = part.get("id") or call["id"]
    call["name"] = part["function"].get("name") or call["name"]
    call["arguments"] += part["function"].get("arguments") or ""


def _exchange(calls) -> list[dict[str, Any]]:
    made, results = [], []
    for call in calls:
        function = {"name": call["name"], "arguments": call["arguments"]}
        made.append({"id": call["id"], "type": "function", "function": function})
        result = calculate(orjson.loads(call["arguments"])["expression"])
        results.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return [{"role": "assistant", "content": None, "tool_calls": made}, *results]


async def deltas_as_they_come(url: str, messages: list) -> AsyncIterator[dict[str, Any]]:
    """Yield LiteLLM's own stream, from its objects."""
    litellm = warm_up().result()
    stream = await litellm.acompletion(
        model=MODEL, messages=messages, tools=TOOLS, stream=True, base_url=url, api_key="none"
    )
    async for chunk in stream:
        for choice in chunk.choices:
            calls = [call.model_dump() for call in choice.delta.tool_calls or ()]
            yield {"content": choice.delta.content, "tool_calls": calls}


class RawHTTP:
    """The minimum: an HTTP client, a split at line feeds, a JSON parser."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/chat/completions"
        self.client: aiohttp.ClientSession | None = None

    async def deltas(self, messages: list) -> AsyncIterator[dict[str, Any]]:
        self.client = self.client or aiohttp.ClientSession()
        asked = {"model": PLAN.model, "messages": messages, "tools": TOOLS, "stream": True}
        rest = b""
        async with self.client.post(self.url, data=orjson.dumps(asked)) as answer:
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {"):
                        for choice in orjson.loads(line[6:])["choices"]:
                            yield choice["delta"]


async def deltas_of(llm: LLM, messages: list) -> AsyncIterator[dict[str, Any]]:
    async for chunk in llm.stream(model=MODEL, messages=messages, tools=TOOLS):
        for choice in chunk["choices"]:
            yield choice["delta"]


async def by_engine(llm: LLM) -> str:
    runtime = AgentRuntime(
        ReActPlanner(llm, MODEL, instructions=SYSTEM),
        ToolRegistry([CalculatorTool()]),
        Guardrails(count_tokens=tokens.count),
        FallbackStrategy(),
    )
    return (await runtime.run(QUERY)).answer


class InProcess:
    """The same model without a network, to measure only the engine."""

    async def stream(self, *, messages: list[dict], **_) -> AsyncIterator[dict[str, Any]]:
        turn = turn_of(messages)
        deltas = call_deltas(turn) if turn < PLAN.steps else self._answer()
        for delta in deltas:
            yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        finish = "tool_calls" if turn < PLAN.steps else "stop"
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}

    def _answer(self):
        return [{"content": f"@{number:012x} "} for number in range(PLAN.tokens)]


PEERS: dict[str, Callable[[str], Peer]] = {
    AS_IT_COMES: lambda url: partial(by_hand, partial(deltas_as_they_come, url)),
    "by hand, our LiteLLM model": lambda url: partial(
        by_hand, partial(deltas_of, LiteLLMModel("none", url))
    ),
    "by hand, raw HTTP": lambda url: partial(by_hand, RawHTTP(url).deltas),
    "by hand, our direct model": lambda url: partial(
        by_hand, partial(deltas_of, DirectModel("none", url))
    ),
    "engine, our direct model": lambda url: partial(by_engine, DirectModel("none", url)),
    "engine, our LiteLLM model": lambda url: partial(by_engine, LiteLLMModel("none", url)),
    "engine, model in process": lambda url: partial(by_engine, InProcess()),
}


class WrongAnswer(Exception):
    """Raised when a run didn't return every token."""


async def measure(peer: Peer, runs: int, at_once: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(0, runs, at_once):
        answers = await asyncio.gather(*(peer() for _ in range(at_once)))
        if any(len(stamps(answer)) != PLAN.tokens for answer in answers):
            raise WrongAnswer(answers[0][:200])
    wall = time.perf_counter() - wall
    await asyncio.sleep(AFTERMATH)
    cpu = time.process_time() - cpu
    return {"cpu ms": cpu / runs * 1000, "wall ms": wall / runs * 1000}


async def obey(peer: Peer) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(orjson.dumps(await measure(peer, **orjson.loads(line))).decode(), flush=True)


if __name__ == "__main__":
    warm_up().result()
    asyncio.run(obey(PEERS[sys.argv[1]](f"http://127.0.0.1:{sys.argv[2]}/v1")))
