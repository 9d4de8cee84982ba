"""LiteLLM in an environment full of secrets: none is sent where it doesn't belong.

Every variable that LiteLLM's code reads is set to a unique marker, and every request of any of
its clients is captured.
"""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from agents.engine.errors import AgentError
from agents.llm.litellm_model import LiteLLMModel, warm_up
from agents.llm.parameters import SettingNotAllowed
from agents.llm.providers import PROVIDERS_BY_PREFIX
from tests.sampling import one_in
from tests.wire import Reply, WireServer, fail

pytestmark = [
    pytest.mark.filterwarnings("ignore:Items? '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]
READS = re.compile(r"(?:get_secret\w*|getenv|environ(?:\.get)?)[(\[]\s*\"([A-Z][A-Z0-9_]+)\"")
# Variables about how LiteLLM works or where servers are, not credentials.
NO_SECRET = re.compile(
    r"PROXY|SSL|FILE|PATH|DIR$|_BASE$|URL$|URI$|ENDPOINT|HOST|HOME$|LITELLM_|TIMEOUT|MAX|MIN_"
    r"|DEFAULT|DEBUG|REGION|PROFILE|LOCATION|ROLE|TTL|SIZE|VERSION|^DD_|^OTEL|^USE_|MODE$|LIMIT"
    r"|COUNT|SECONDS|INTERVAL|LEVEL|ORGANIZATION|PROJECT|ENABLE|DISABLE|^AWS_CONTAINER|^OR_|^PYTHON|^CI$"
)
MARK = re.compile(r"mark-[A-Z0-9_]+")
HELLO = [{"role": "user", "content": "hello"}]
AWS = {"aws_access_key_id": "AKIAOFTHISROW", "aws_secret_access_key": "never-shown-1"}


@pytest.fixture(scope="module")
def variables():
    litellm = Path(httpx.__file__).parents[1] / "litellm"
    texts = (path.read_text(errors="replace") for path in litellm.rglob("*.py"))
    names = {name for text in texts for name in READS.findall(text)}
    assert {"OPENAI_API_KEY", "AZURE_CLIENT_SECRET", "AWS_BEARER_TOKEN_BEDROCK"} <= names
    return {name for name in names if not NO_SECRET.search(name)}


@pytest.fixture
async def sent(variables, monkeypatch):
    """Capture the requests to any host."""
    await asyncio.wrap_future(warm_up())
    for name in variables | {"ASHIATO_SECRET_KEY", "DATABASE_URL"}:
        monkeypatch.setenv(name, f"mark-{name}")
    caught: list[httpx.Request] = []

    def keep(request):
        caught.append(request)
        raise httpx.ConnectError("caught", request=request)

    async def send(client, request, **options):
        keep(request)

    # Imported here, because it takes a second of each process that collects the tests.
    from openai._base_client import BaseClient

    # The client retries without a response; the test needn't wait for that.
    monkeypatch.setattr(BaseClient, "_calculate_retry_timeout", lambda *given: 0.0)
    monkeypatch.setattr(httpx.AsyncClient, "send", send)
    monkeypatch.setattr(httpx.Client, "send", lambda client, request, **options: keep(request))
    return caught


async def ask(llm, model):
    with pytest.raises(AgentError) as caught:
        async for _ in llm.stream(model=model, messages=HELLO, max_tokens=5):
            pass
    return caught.value


def marks(requests):
    seen: set[str] = set()
    for request in requests:
        text = f"{request.headers.multi_items()} {request.url} {request.content!r}"
        seen |= {mark.removeprefix("mark-") for mark in MARK.findall(text)}
    return seen


@pytest.mark.parametrize("prefix", one_in(8, sorted(PROVIDERS_BY_PREFIX)))
async def test_a_custom_url_gets_no_secret_from_the_environment(prefix, sent):
    error = await ask(LiteLLMModel(base_url="http://typed.invalid/v1"), f"{prefix}/some-model")

    assert marks(sent) == set()
    if not isinstance(error, SettingNotAllowed):
        assert {request.url.host for request in sent} == {"typed.invalid"}, error


@pytest.mark.parametrize("prefix", one_in(8, sorted(PROVIDERS_BY_PREFIX)))
async def test_a_provider_url_gets_only_that_providers_key(prefix, sent):
    await ask(LiteLLMModel(), f"{prefix}/some-model")

    provider = PROVIDERS_BY_PREFIX[prefix]
    own = {*provider.keys, "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"}
    assert marks(sent) <= (own if prefix.startswith(("bedrock", "sage")) else {*provider.keys})
    if not provider.keys:
        return
    sent.clear()
    await ask(LiteLLMModel(api_key="sk-of-this-row"), f"{prefix}/some-model")
    assert marks(sent) == set()


TOKEN = {"secrets": {"azure_ad_token": "token-of-this-row"}}
GATEWAY = "https://gateway.ai.cloudflare.com/v1/mine"
# Model names and URLs that LiteLLM handles in a special way.
DETOURS = [
    ("azure/x", "http://typed.invalid", TOKEN),
    ("azure/responses/x", "http://typed.invalid", TOKEN),
    ("azure/mistral-large-latest", "http://typed.invalid", TOKEN),
    ("azure/x", GATEWAY, TOKEN),
    ("azure/mistral-large-latest", "http://typed.invalid", {}),
    ("azure_ai/gpt-4o", "http://typed.invalid", {}),
    ("azure_ai/claude-x", "http://typed.invalid", {}),
    ("openai/responses/x", "http://typed.invalid", {}),
    ("perplexity/openai/gpt-5", "http://typed.invalid", {}),
    ("anthropic/claude-2", "http://typed.invalid", {}),
]


@pytest.mark.parametrize(("model", "address", "given"), one_in(4, DETOURS))
async def test_special_model_names_send_no_secret_to_a_custom_url(model, address, given, sent):
    error = await ask(LiteLLMModel(base_url=address, **given), model)

    assert sent, error
    assert marks(sent) == set()
    assert {request.url.host for request in sent} == {httpx.URL(address).host}


@pytest.mark.parametrize("prefix", ["litellm_proxy", "hosted_vllm", "azure", "azure_ai"])
@pytest.mark.parametrize("name", ["x", "mistral-large-latest"])
async def test_the_key_of_a_self_hosted_server_is_sent_only_there(
    prefix, name, sent, monkeypatch
):
    (variable,) = PROVIDERS_BY_PREFIX[prefix].addresses
    monkeypatch.delenv(variable, raising=False)
    error = await ask(LiteLLMModel(api_key="sk-of-this-row"), f"{prefix}/{name}")

    assert str(error) == f"The model {f'{prefix}/{name}'!r} has no URL."
    assert sent == []
    monkeypatch.setenv(variable, "http://named.invalid")
    await ask(LiteLLMModel(api_key="sk-of-this-row"), f"{prefix}/{name}")
    assert {request.url.host for request in sent} == {"named.invalid"}


async def test_redirects_of_providers_are_not_followed():
    """Some of LiteLLM's clients would, including the question and headers with the key."""
    async with WireServer() as elsewhere:
        there = {"Location": f"{elsewhere.url}/chat/completions"}
        async with WireServer(lambda request: Reply(status=307, headers=there)) as server:
            for prefix in sorted(
                PROVIDERS_BY_PREFIX.keys() - {"bedrock", "sagemaker", "sagemaker_chat"}
            ):
                await ask(LiteLLMModel("sk-of-this-row", server.url), f"{prefix}/some-model")

    assert len(server.requests) >= len(PROVIDERS_BY_PREFIX) - 4  # Vertex AI has no custom URL
    assert elsewhere.requests == []


ATTACKS = {
    "a variable for Amazon's security tokens": (
        "bedrock/anthropic.claude-x",
        {
            "parameters": {"aws_region_name": "eu-central-1", "aws_session_name": "x"},
            "secrets": {
                "aws_web_identity_token": "oidc/env/ASHIATO_SECRET_KEY",
                "aws_role_name": "arn:aws:iam::123456789012:role/x",
                "aws_sts_endpoint": "{address}",
            },
        },
    ),
    "the same among the settings": (
        "bedrock/anthropic.claude-x",
        {
            "parameters": {
                "aws_web_identity_token": "oidc/env/DATABASE_URL",
                "aws_role_name": "arn:aws:iam::123456789012:role/x",
                "aws_session_name": "x",
                "aws_sts_endpoint": "{address}",
            }
        },
    ),
    "a model to fall back to": (
        "openai/gpt-4.1",
        {
            "parameters": {
                "fallbacks": [{"model": "openai/x", "api_base": "{address}", "api_key": None}]
            }
        },
    ),
    "an endpoint among the secrets": (
        "bedrock/anthropic.claude-x",
        {"api_key": "sk-stored", "secrets": {"aws_bedrock_runtime_endpoint": "{address}"}},
    ),
    "an endpoint without a key": (
        "bedrock/anthropic.claude-x",
        {"parameters": {"aws_bedrock_runtime_endpoint": "{address}"}},
    ),
    "a token for Azure": (
        "azure/x",
        {"base_url": "{address}", "secrets": {"azure_ad_token": "oidc/env/DATABASE_URL"}},
    ),
    "a reference as the key": (
        "openai/x",
        {"base_url": "{address}", "api_key": "os.environ/ASHIATO_SECRET_KEY"},
    ),
    "a header": (
        "openai/x",
        {"base_url": "{address}", "parameters": {"extra_headers": {"Host": "x"}}},
    ),
    "a name that is an address": ("openai/{address}", {}),
    "a file of Google's": (
        "vertex_ai/gemini-x",
        {
            "parameters": {"vertex_project": "mine-1"},
            "secrets": {"vertex_credentials": "/etc/x"},
        },
    ),
}


def fill_address(value, address):
    if isinstance(value, str):
        return value.replace("{address}", address)
    if isinstance(value, dict):
        return {name: fill_address(item, address) for name, item in value.items()}
    return [fill_address(item, address) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("model", "options"), ATTACKS.values(), ids=ATTACKS)
async def test_settings_that_change_the_host_are_rejected_before_any_request(
    model, options, monkeypatch
):
    for name in ("ASHIATO_SECRET_KEY", "DATABASE_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, f"mark-{name}")
    async with WireServer(lambda request: fail(400, "no")) as server:
        llm = LiteLLMModel(**fill_address(options, server.url))
        error = await ask(llm, fill_address(model, server.url))

    assert isinstance(error, SettingNotAllowed)
    assert "mark-" not in str(error)
    assert server.requests == []


async def test_a_bedrock_endpoint_gets_only_its_own_keys(monkeypatch):
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, f"mark-{name}")
    async with WireServer() as server:
        place = {"aws_bedrock_runtime_endpoint": server.url.removesuffix("/v1")}
        about = {"parameters": {"aws_region_name": "eu-central-1", **place}}
        await ask(LiteLLMModel(**about, secrets=AWS), "bedrock/anthropic.claude-x")
        await ask(LiteLLMModel("sk-of-this-row", **about), "bedrock/anthropic.claude-x")

    signed, plain = (request.headers for request in server.requests)
    assert "mark-" not in str(dict(signed)) + str(dict(plain))
    assert "Credential=AKIAOFTHISROW/" in signed["authorization"]
    assert plain["authorization"] == "Bearer sk-of-this-row"
    assert "never-shown" not in str(dict(signed))


@pytest.mark.parametrize(
    "name", ["AWS_ROLE_NAME", "AWS_PROFILE_NAME", "AWS_WEB_IDENTITY_TOKEN"]
)
async def test_a_bedrock_endpoint_gets_no_identity_from_the_environment(name, monkeypatch):
    monkeypatch.setenv(name, "of-the-environment")
    async with WireServer() as server:
        place = {"aws_bedrock_runtime_endpoint": server.url.removesuffix("/v1")}
        about = {"aws_region_name": "eu-central-1", **place}
        llm = LiteLLMModel(parameters=about, secrets=AWS)
        error = await ask(llm, "bedrock/anthropic.claude-x")

    assert isinstance(error, SettingNotAllowed)
    assert server.requests == []
