"""Probing a model's capabilities with requests."""

import pytest

from agents.engine.errors import AgentError
from agents.llm.configured_model import ConfiguredModel
from agents.llm.direct.direct_model import DirectModel
from agents.llm.discovery.model_probe import ProbeResult, probe
from agents.llm.litellm_model import LiteLLMModel
from tests.llm.capability_server import model_with
from tests.wire import WireServer, cut, fail, say

PARTS = ["tools", "vision", "schema"]
KEY = "sk-own-key-0123456789"


async def probe_model(script, make=DirectModel):
    async with WireServer(script) as server:
        llm = ConfiguredModel(make(KEY, server.url), "openai/gpt-4.1")
        found = [piece async for piece in probe(llm, "fast", {"temperature": 0})]
    words = "".join(piece for piece in found if isinstance(piece, str))
    return words, {r.part: r for r in found if isinstance(r, ProbeResult)}, server


@pytest.mark.parametrize("make", [DirectModel, LiteLLMModel])
async def test_all_capabilities_of_a_model_are_found(make):
    words, results, server = await probe_model(model_with(*PARTS), make)

    assert words == "Good morning to you."
    assert {part for part, result in results.items() if result.works} == {"reply", *PARTS}
    reply = results["reply"]
    assert (reply.read, reply.written) == (11, 7)
    assert 0 < reply.first <= reply.seconds
    assert reply.cost > 0
    assert server.requests[0].body["temperature"] == 0


@pytest.mark.parametrize("missing", PARTS)
async def test_missing_capabilities_are_found(missing):
    others = [part for part in PARTS if part != missing]
    _, results, _ = await probe_model(model_with(*others))

    assert [part for part, result in results.items() if not result.works] == [missing]
    assert f"does not support {missing}" in str(results[missing].error)


async def test_a_text_reply_does_not_count_as_a_tool_call_or_json():
    _, results, _ = await probe_model(lambda request: say("I would rather talk."))

    assert [part for part, result in results.items() if result.works] == ["reply"]
    assert all(result.error is None for result in results.values())


@pytest.mark.parametrize(
    "reply",
    [
        fail(401, f"Incorrect API key provided: {KEY}."),
        fail(404, "No such model."),
        cut(say("Good"), after=1),
    ],
    ids=["bad key", "unknown model", "cut"],
)
async def test_a_model_that_does_not_answer_is_not_probed_further(reply):
    _, results, server = await probe_model([reply])

    assert list(results) == ["reply"]
    assert isinstance(results["reply"].error, AgentError)
    assert KEY not in str(results["reply"].error)
    assert len(server.requests) == 1
