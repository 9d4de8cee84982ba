"""A model with our own name and price."""

import pytest

from agents.engine.errors import ModelError
from agents.llm.configured_model import ConfiguredModel, UnavailableModel
from agents.llm.direct.direct_model import DirectModel
from agents.llm.model_info import Price
from tests.wire import WireServer, say

HELLO = {"model": "fast", "messages": [{"role": "user", "content": "Hello"}]}
PRICE = Price(input=2.0, output=3.0, read=2.0, written=2.0)


async def collect_chunks(llm):
    return [chunk async for chunk in llm.stream(**HELLO)]


async def test_the_request_uses_the_providers_model_name():
    async with WireServer([say("Hello.")]) as server:
        await collect_chunks(ConfiguredModel(DirectModel("key", server.url), "openai/gpt-4.1"))

    assert server.requests[0].body["model"] == "gpt-4.1"


@pytest.mark.parametrize(
    ("price", "dollars"), [(PRICE, 43.0), (Price(input=0, output=0, read=0, written=0), 0)]
)
async def test_a_configured_price_overrides_the_table_even_if_zero(price, dollars):
    async with WireServer([say("Hello.")]) as server:
        llm = ConfiguredModel(DirectModel("key", server.url), "openai/gpt-4.1", price)
        usage = next(chunk["usage"] for chunk in await collect_chunks(llm) if "usage" in chunk)

    assert usage["cost"] == dollars


def test_it_exposes_the_route_and_url_of_the_wrapped_model():
    llm = ConfiguredModel(
        DirectModel("key", "http://here/v1", batch_seconds=0.1), "openai/gpt-4.1"
    )

    assert (llm.route, llm.base_url, llm.batch_seconds) == ("direct", "http://here/v1", 0.1)


async def test_a_disabled_model_raises_with_the_reason():
    with pytest.raises(ModelError, match="is disabled"):
        await collect_chunks(UnavailableModel(ModelError("The model 'fast' is disabled.")))
