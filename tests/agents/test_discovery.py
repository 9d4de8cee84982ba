import json
from pathlib import Path

from agents.llm.discovery import choose

SECRET = "sk-secret"


async def find(environ=None, servers=(), **options):
    asked = {"explicit": None, "base_url": None, "api_key": None, "probe": True} | options
    return await choose(environ=environ or {}, servers=servers, **{"own_port": None} | asked)


def known_models():
    spec = discovery_spec()
    prices = Path(spec) / "model_prices_and_context_window_backup.json"
    return json.loads(prices.read_text())


def discovery_spec():
    from importlib.util import find_spec

    return find_spec("litellm").submodule_search_locations[0]


async def test_what_was_asked_for_is_taken_before_all_else():
    choice = await find(
        {"OPENAI_API_KEY": SECRET}, explicit="ollama/llama3", base_url="http://x", api_key="k"
    )

    assert (choice.model, choice.label) == ("ollama/llama3", "llama3")
    assert (choice.base_url, choice.api_key) == ("http://x", "k")
    assert choice.source == "ASHIATO_MODEL"
