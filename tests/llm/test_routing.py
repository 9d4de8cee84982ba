"""Which route is taken to which model, and its URL."""

import pytest

from agents.engine.errors import ModelError
from agents.llm.routing import choose_route, resolve_endpoint

KEY = "sk-very-secret-key-0123456789"
NAMES = ("OPENAI_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "MISTRAL_API_KEY")
EVERY_KEY = dict.fromkeys(NAMES, KEY)


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-4.1", "openai/gpt-5", "openai/o3", "groq/llama", "xai/grok-4.7", "mistral/m"],
)
def test_a_server_on_openais_wire_is_asked_directly_where_there_is_a_key(model):
    assert choose_route(model, EVERY_KEY) == "direct"
    assert choose_route(model, {}) == "litellm"
    assert choose_route(model, {}, api_key=KEY) == "direct"


@pytest.mark.parametrize("model", ["ollama/llama3", "ollama_chat/llama3", "lm_studio/qwen"])
def test_a_server_on_this_machine_needs_no_key(model):
    assert choose_route(model, {}) == "direct"


@pytest.mark.parametrize(
    "model",
    ["anthropic/claude", "gemini/flash", "bedrock/x", "azure/x", "vertex_ai/x", "cohere/x"],
)
def test_other_wires_are_left_to_litellm(model):
    assert choose_route(model, EVERY_KEY, base_url="http://x/v1", api_key=KEY) == "litellm"


@pytest.mark.parametrize("model", ["gpt-4o", "demo", "", "/", "nobody/knows"])
def test_a_name_that_does_not_say_whose_it_is_is_left_to_litellm(model):
    assert choose_route(model, EVERY_KEY) == "litellm"


@pytest.mark.parametrize("name", ["gpt-5.4", "gpt-5.12-mini", "gpt-6.1-sol", "gpt-5-codex"])
def test_models_that_openai_has_on_another_wire_are_left_to_litellm(name):
    assert choose_route(f"openai/{name}", EVERY_KEY) == "litellm"
    assert choose_route(f"openai/{name}", {}, base_url="http://127.0.0.1:8000/v1") == "direct"


def test_any_address_will_do_for_a_server_that_speaks_as_openai_does():
    assert choose_route("openai/my-own", {}, base_url="http://127.0.0.1:8000/v1") == "direct"
    assert choose_route("openai/my-own", {"OPENAI_BASE_URL": "http://10.0.0.7/v1"}) == "direct"


def test_a_server_that_nobody_has_placed_is_left_to_litellm():
    assert choose_route("hosted_vllm/qwen", {}) == "litellm"
    assert choose_route("hosted_vllm/qwen", {"HOSTED_VLLM_API_BASE": "http://x/v1"}) == "direct"


def test_a_route_can_be_forced():
    assert choose_route("groq/llama", EVERY_KEY, forced="litellm") == "litellm"
    assert choose_route("openai/gpt-6.1-sol", EVERY_KEY, forced="direct") == "direct"


@pytest.mark.parametrize(
    ("environ", "base_url", "url", "key"),
    [
        ({"GROQ_API_KEY": KEY}, None, "https://api.groq.com/openai/v1", KEY),
        ({"GROQ_API_KEY": KEY}, "http://x/v1/", "http://x/v1", None),
        ({"GROQ_API_KEY": KEY, "GROQ_API_BASE": "http://y/v1"}, None, "http://y/v1", KEY),
        ({"GROQ_API_BASE": "http://y/v1"}, None, "http://y/v1", None),
    ],
)
def test_a_key_of_the_environment_goes_nowhere_else(environ, base_url, url, key):
    there = resolve_endpoint("groq/openai/gpt-oss-120b", environ, base_url=base_url)

    assert (there.url, there.key, there.name) == (url, key, "openai/gpt-oss-120b")
    assert KEY not in repr(there)


@pytest.mark.parametrize(
    ("path", "url", "is_own"),
    [
        ("", "", True),
        ("/", "", True),
        ("/api", "", True),
        ("/api/chat", "", True),
        ("/v1/", "/v1", False),
    ],
)
def test_ollama_is_asked_on_its_own_wire_unless_the_address_is_openais(path, url, is_own):
    host = "http://127.0.0.1:11434"
    there = resolve_endpoint("ollama/llama3", {"OLLAMA_API_BASE": host + path})

    assert (there.url, there.has_own_api) == (host + url, is_own)


def test_a_missing_key_is_told_as_a_missing_key():
    with pytest.raises(ModelError, match="has no API key") as caught:
        resolve_endpoint("groq/llama", {})

    assert caught.value.advice == "Set the environment variable GROQ_API_KEY."


def test_what_cannot_be_asked_directly_says_so():
    with pytest.raises(ModelError, match="'anthropic/claude' can't be called directly"):
        resolve_endpoint("anthropic/claude", {})
