"""One call is one HTTP request on every route, whatever the provider answers.

The engine retries and reports it; a client that retries silently causes hidden costs.
"""

import asyncio

import pytest

from agents.engine.errors import AgentError
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.parameters.options import AWS_PREFIXES
from agents.llm.providers import PROVIDERS
from tests.wire import WireServer, fail

pytestmark = [
    pytest.mark.filterwarnings("ignore:Items? '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

HELLO = [{"role": "user", "content": "hello"}]
# Providers that accept any URL. LiteLLM needs more than a URL for the others.
OPTIONS = {"azure": {"api_version": "2024-10-21"}, "azure_ai": {"api_version": "2024-10-21"}}
PREFIXES = [p.prefix for p in PROVIDERS if p.prefix not in AWS_PREFIXES | {"vertex_ai"}]
DIRECT_PREFIXES = [p.prefix for p in PROVIDERS if p.is_direct]
# One of each kind of client; the others run with the thorough tests.
SAMPLES = {"openai", "anthropic", "gemini", "groq", "baseten", "ollama"}
RETRIED = (409, 429, 500, 503)  # statuses that OpenAI's client would retry


def sampled(prefixes):
    return [
        pytest.param(prefix, marks=[] if prefix in SAMPLES else pytest.mark.thorough)
        for prefix in prefixes
    ]


class Failing(WireServer):
    """A server that answers every request with this status, or disconnects if it is None."""

    def __init__(self, status: int | None) -> None:
        super().__init__()
        self.status = status

    def _reply_to(self, request):
        assert self.status is not None
        return fail(self.status, "Not now")

    async def _serve(self, reader, writer):
        if self.status is not None:
            await super()._serve(reader, writer)
            return
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head)
        writer.close()


async def count_requests(route, prefix, status):
    async with Failing(status) as server:
        llm = route("sk-of-this-test", server.url, parameters=OPTIONS.get(prefix, {}))
        with pytest.raises(AgentError):
            async with asyncio.timeout(20):
                [_ async for _ in llm.stream(model=f"{prefix}/some", messages=HELLO)]
    return len(server.requests)


@pytest.mark.parametrize("status", [*RETRIED, None])
@pytest.mark.parametrize("prefix", sampled(DIRECT_PREFIXES))
async def test_a_direct_call_is_one_request(prefix, status):
    assert await count_requests(DirectModel, prefix, status) == 1


@pytest.mark.parametrize("status", [429, 500, None])
@pytest.mark.parametrize("prefix", sampled(PREFIXES))
async def test_a_call_through_litellm_is_one_request(prefix, status):
    assert await count_requests(LiteLLMModel, prefix, status) == 1
