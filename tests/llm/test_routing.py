"""Which route is taken to which model, and its URL."""

import pytest

from agents.engine.errors import ModelError
from agents.llm.routing import choose_route, is_self_hosted, resolve_endpoint

KEY = "sk-very-secret-key-0123456789"
NAMES = ("OPENAI_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "MISTRAL_API_KEY")
EVERY_KEY = dict.fromkeys(NAMES, KEY)


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-4.1", "openai/gpt-5", "openai/o3", "groq/llama", "xai/grok-4.7", "mistral/m"],
)
def test_an_openai_compatible_server_with_a_key_is_called_directly(model):
    assert choose_route(model, EVERY_KEY) == "direct"
    assert choose_route(model, {}) == "litellm"
    assert choose_route(model, {}, api_key=KEY) == "direct"


@pytest.mark.parametrize("model", ["ollama/llama3", "ollama_chat/llama3", "lm_studio/qwen"])
def test_a_server_on_this_machine_needs_no_key(model):
    assert choose_route(model, {}) == "direct"


@pytest.mark.parametrize(
    "model",
    ["bedrock/x", "azure/x", "vertex_ai/x", "vertex_ai/gemini-3-pro", "cohere/x"],
)
def test_other_protocols_use_litellm(model):
    assert choose_route(model, EVERY_KEY, base_url="http://x/v1", api_key=KEY) == "litellm"


@pytest.mark.parametrize("model", ["gpt-4o", "demo", "", "/", "nobody/knows"])
def test_a_name_without_a_provider_uses_litellm(model):
    assert choose_route(model, EVERY_KEY) == "litellm"


@pytest.mark.parametrize("name", ["gpt-5.4", "gpt-5.12-mini", "gpt-6.1-sol", "gpt-5-codex"])
def test_openai_models_of_the_responses_api_use_litellm(name):
    assert choose_route(f"openai/{name}", EVERY_KEY) == "litellm"
    assert choose_route(f"openai/{name}", {}, base_url="http://127.0.0.1:8000/v1") == "direct"


def test_an_openai_compatible_server_can_have_any_url():
    assert choose_route("openai/my-own", {}, base_url="http://127.0.0.1:8000/v1") == "direct"
    assert choose_route("openai/my-own", {"OPENAI_BASE_URL": "http://10.0.0.7/v1"}) == "direct"


def test_a_server_without_a_url_uses_litellm():
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
def test_an_environment_key_is_not_sent_elsewhere(environ, base_url, url, key):
    there = resolve_endpoint("groq/openai/gpt-oss-120b", environ, base_url=base_url)

    assert (there.url, there.key, there.name) == (url, key, "openai/gpt-oss-120b")
    assert KEY not in repr(there)


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("anthropic/claude-sonnet-5", "https://api.anthropic.com"),
        ("gemini/gemini-3.8-flash", "https://generativelanguage.googleapis.com/v1beta"),
    ],
)
def test_anthropic_and_gemini_are_called_directly(model, url):
    keys = {"ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY}

    assert choose_route(model, keys) == "direct"
    assert choose_route(model, {}) == "litellm"
    assert choose_route(model, {}, api_key=KEY) == "direct"
    assert choose_route(model, keys, forced="litellm") == "litellm"
    assert resolve_endpoint(model, keys).url == url


@pytest.mark.parametrize(
    "model",
    [
        "anthropic/claude-3-5-haiku-latest",
        "anthropic/claude-sonnet-4-20250514",
        "gemini/gemini-2.5-flash-image",
        "gemini/gemini-2.5-pro-preview-tts",
        "gemini/gemma-3-27b-it",
    ],
)
def test_what_the_direct_route_does_not_support_uses_litellm(model):
    assert choose_route(model, {}, api_key=KEY) == "litellm"


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5-20250929", "anthropic/glm-5"])
def test_new_and_compatible_models_are_called_directly(model):
    assert choose_route(model, {}, base_url="http://x", api_key=KEY) == "direct"


@pytest.mark.parametrize(
    ("model", "base_url", "url"),
    [
        ("anthropic/x", "http://x", "http://x"),
        ("anthropic/x", "http://x/v1/", "http://x"),
        ("anthropic/x", "http://x/proxy/v1/messages", "http://x/proxy"),
        ("gemini/x", "http://x/", "http://x/v1beta"),
        ("gemini/x", "http://x/v1beta", "http://x/v1beta"),
        ("gemini/x", "http://x/google/v1", "http://x/google/v1"),
    ],
)
def test_a_url_can_have_the_path_of_the_api(model, base_url, url):
    assert resolve_endpoint(model, {}, base_url=base_url).url == url


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
def test_ollama_uses_its_own_protocol_unless_the_url_is_openai_compatible(path, url, is_own):
    host = "http://127.0.0.1:11434"
    there = resolve_endpoint("ollama/llama3", {"OLLAMA_API_BASE": host + path})

    assert (there.url, bool(there.own_api)) == (host + url, is_own)


def test_a_missing_key_is_reported_as_missing():
    with pytest.raises(ModelError, match="has no API key") as caught:
        resolve_endpoint("groq/llama", {})

    assert caught.value.advice == "Set the environment variable GROQ_API_KEY."


def test_a_model_that_cannot_be_called_directly_is_an_error():
    with pytest.raises(ModelError, match="'bedrock/claude' can't be called directly"):
        resolve_endpoint("bedrock/claude", {})


@pytest.mark.parametrize(
    ("model", "base_url", "expected"),
    [
        ("ollama/some", "", True),
        ("hosted_vllm/some", "https://models.example.com/v1", True),
        ("openai/some", "http://127.0.0.1:8080/v1", True),
        ("openai/some", "https://models.example.com/v1", False),
        ("anthropic/some", "", False),
        ("demo", "", False),
    ],
)
def test_ones_own_servers_are_known_by_kind_or_address(model, base_url, expected):
    assert is_self_hosted(model, {}, base_url) is expected
