"""A model with our own name and price."""

import pytest

from agents.engine.errors import ModelError
from agents.llm.configured_model import ConfiguredModel, UnavailableModel
from agents.llm.direct_model import DirectModel
from agents.llm.model_info import Price
from tests.wire import WireServer, say

HELLO = {"model": "fast", "messages": [{"role": "user", "content": "Hello"}]}
PRICE = Price(input=2.0, output=3.0, read=2.0, written=2.0)


async def collect_chunks(llm):
    return [chunk async for chunk in llm.stream(**HELLO)]


async def test_the_provider_is_asked_by_its_own_name_for_the_model():
    async with WireServer([say("Hello.")]) as server:
        await collect_chunks(ConfiguredModel(DirectModel("key", server.url), "openai/gpt-4.1"))

    assert server.requests[0].body["model"] == "gpt-4.1"


@pytest.mark.parametrize(
    ("price", "dollars"), [(PRICE, 43.0), (Price(input=0, output=0, read=0, written=0), 0)]
)
async def test_a_price_of_ours_wins_over_the_table_even_if_it_is_nothing(price, dollars):
    async with WireServer([say("Hello.")]) as server:
        llm = ConfiguredModel(DirectModel("key", server.url), "openai/gpt-4.1", price)
        usage = next(chunk["usage"] for chunk in await collect_chunks(llm) if "usage" in chunk)

    assert usage["cost"] == dollars


def test_it_shows_the_route_and_the_address_of_what_is_beneath():
    llm = ConfiguredModel(
        DirectModel("key", "http://here/v1", batch_seconds=0.1), "openai/gpt-4.1"
    )

    assert (llm.route, llm.base_url, llm.batch_seconds) == ("direct", "http://here/v1", 0.1)


async def test_a_closed_model_says_why():
    with pytest.raises(ModelError, match="is disabled"):
        await collect_chunks(UnavailableModel(ModelError("The model 'fast' is disabled.")))
