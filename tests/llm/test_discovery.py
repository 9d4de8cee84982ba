import asyncio
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.llm.discovery import discovery
from agents.llm.discovery.discovery import DEFAULT_PROVIDERS, LocalServer, choose
from tests.wire import Reply, WireServer, closed_port, models, ollama, silent_port

SECRET = "sk-secret"
NOTHING = "no API key or local server was found"


async def find(environ=None, servers=(), *, explicit=None, probe=True, own_port=None, **rest):
    return await choose(
        explicit,
        rest.get("base_url"),
        rest.get("api_key"),
        environ or {},
        probe,
        own_port,
        servers,
    )


async def test_the_configured_model_comes_first():
    choice = await find(
        {"OPENAI_API_KEY": SECRET}, explicit="ollama/llama3", base_url="http://x", api_key="k"
    )

    assert (choice.model, choice.label) == ("ollama/llama3", "llama3")
    assert (choice.base_url, choice.api_key) == ("http://x", "k")
    assert (choice.source, choice.is_demo) == ("ASHIATO_MODEL", False)


async def test_the_demo_model_can_be_configured():
    choice = await find({"OPENAI_API_KEY": SECRET}, explicit="demo")

    assert (choice.is_demo, choice.source) == (True, "ASHIATO_MODEL")


@pytest.mark.parametrize("provider", DEFAULT_PROVIDERS, ids=lambda provider: provider.label)
async def test_a_key_in_the_environment_chooses_its_provider(provider):
    name = provider.keys[-1]
    choice = await find({name: SECRET})

    assert (choice.model, choice.api_key) == (provider.model, SECRET)
    assert choice.source == f"{name} in the environment"
    assert choice.label.startswith(provider.label)


# LiteLLM's list has no models of OpenRouter, which reports the cost of an answer itself.
LISTED = [provider for provider in DEFAULT_PROVIDERS if provider.label != "OpenRouter"]


@pytest.mark.parametrize("provider", LISTED, ids=lambda provider: provider.label)
def test_every_default_is_a_model_that_litellm_knows_and_that_can_call_tools(provider):
    folder = Path(find_spec("litellm").submodule_search_locations[0])
    prices = json.loads((folder / "model_prices_and_context_window_backup.json").read_text())
    known = prices.get(provider.model) or prices[provider.model.partition("/")[2]]

    assert known["litellm_provider"] == provider.model.partition("/")[0]
    assert (known["mode"], known["supports_function_calling"]) == ("chat", True)


async def test_an_empty_key_is_no_key():
    assert (await find({"OPENAI_API_KEY": " ", "ANTHROPIC_API_KEY": ""})).is_demo


async def test_the_openai_url_comes_from_the_environment():
    choice = await find({"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "https://proxy/v1"})

    assert choice.base_url == "https://proxy/v1"


async def test_every_provider_can_have_another_url():
    choice = await find({"GROQ_API_KEY": SECRET, "GROQ_API_BASE": "https://gateway/v1"})

    assert (choice.base_url, choice.api_key) == ("https://gateway/v1", SECRET)


async def test_the_repr_of_a_choice_has_no_key():
    assert SECRET not in repr(await find({"OPENAI_API_KEY": SECRET}))


async def test_ollama_is_found_with_the_first_model_that_can_call_tools():
    pages = ollama(**{"nomic-embed": ["embedding"], "tiny": ["completion"], "able": ["tools"]})
    async with WireServer(pages=pages) as server:
        choice = await find(servers=[LocalServer("Ollama", server.port, "ollama")])

    assert (choice.model, choice.label) == ("openai/able", "Ollama able")
    assert choice.base_url == f"http://127.0.0.1:{server.port}/v1"
    assert choice.source == f"Ollama on 127.0.0.1:{server.port}"


async def test_ollama_without_capabilities_gives_its_first_chat_model():
    pages = ollama(**{"nomic-embed": [], "first": [], "second": []})
    del pages["/api/show"]
    async with WireServer(pages=pages) as server:
        choice = await find(servers=[LocalServer("Ollama", server.port, "ollama")])

    assert choice.model == "openai/first"


async def test_an_openai_compatible_server_is_found_and_sent_no_key():
    pages = models("text-embedding-nomic", "qwen")
    async with WireServer(pages=pages) as server:
        choice = await find({"HF_TOKEN": SECRET}, [LocalServer("LM Studio", server.port)])

    assert (choice.model, choice.api_key) == ("openai/qwen", None)
    assert all("authorization" not in request.headers for request in server.requests)


async def test_the_first_server_of_the_list_wins_not_the_fastest():
    body = json.dumps(models("slow")["/v1/models"]).encode()
    late = Reply(parts=(0.05, body), headers={"Content-Length": str(len(body))})
    pages = {"/v1/models": late}
    async with WireServer(pages=pages) as first, WireServer(pages=models("fast")) as second:
        choice = await find(
            servers=[LocalServer("A", first.port), LocalServer("B", second.port)]
        )

    assert choice.model == "openai/slow"
    assert len(second.requests) == 1


@pytest.mark.parametrize(
    "page",
    [
        {"hello": "world"},
        ["a list"],
        {"object": "list", "data": []},
        {"object": "list", "data": [{"name": "no id"}]},
        {"object": "list", "data": [{"id": "only-embeddings"}]},
        Reply(status=404),
        Reply(parts=(b"<html>not JSON</html>",)),
        {"object": "list", "data": [{"id": "endless", "more": "x" * 2_000_000}]},
    ],
)
async def test_another_program_on_the_port_is_not_a_model_server(page):
    async with WireServer(pages={"/v1/models": page}) as server:
        choice = await find(servers=[LocalServer("vLLM", server.port)])

    assert (choice.is_demo, choice.source) == (True, NOTHING)


async def test_silent_servers_and_closed_ports_are_skipped():
    async with silent_port() as silent:
        servers = [LocalServer("A", silent), LocalServer("B", closed_port())]
        choice = await find(servers=servers)

    assert choice.is_demo


async def test_local_servers_are_probed_at_the_same_time(monkeypatch):
    monkeypatch.setattr(discovery, "PROBE_SECONDS", 10)
    all_connected = asyncio.Barrier(4)
    hung_up = []

    async def wait_for_the_others(_, writer):
        async with asyncio.timeout(5):
            await all_connected.wait()
        hung_up.append(writer.close())

    server = await asyncio.start_server(wait_for_the_others, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await find(servers=[LocalServer("A", port)] * 4)

    assert len(hung_up) == 4


async def test_discovery_does_not_find_the_product_itself():
    async with WireServer(pages=models("myself")) as server:
        servers = [LocalServer("vLLM", server.port)]
        choice = await find(servers=servers, own_port=server.port)

    assert choice.is_demo
    assert server.requests == []


async def test_no_requests_are_sent_when_discovery_is_disabled():
    async with WireServer(pages=models("there")) as server:
        choice = await find(servers=[LocalServer("vLLM", server.port)], probe=False)

    assert (choice.is_demo, server.requests) == (True, [])


async def test_discovery_can_be_cancelled():
    async with silent_port() as port:
        looking = asyncio.create_task(find(servers=[LocalServer("A", port)]))
        await asyncio.sleep(0)
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking


async def test_an_environment_key_is_not_used_when_discovery_is_disabled():
    choice = await find({"OPENAI_API_KEY": "sk-something"}, probe=False)

    assert choice.is_demo
