"""Which names and values may reach a provider, and where a secret may go."""

import asyncio
import json

import pytest

from agents.llm import parameters
from agents.llm.litellm_model import warm_up
from agents.llm.parameters import (
    ModelSettings,
    SettingNotAllowed,
    check,
    destination,
    value_rules,
)
from agents.llm.parameters.settings import UnknownProvider
from agents.llm.providers import PROVIDERS_BY_PREFIX

KEY = "sk-very-secret-key-0123456789"
ARN = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/x"


def rejection(model="openai/gpt-4.1", request=None, **settings):
    with pytest.raises(SettingNotAllowed) as caught:
        check(ModelSettings(model=model, **settings), request)
    return str(caught.value)


FOREIGN = [
    "fallbacks",
    "api_base",
    "base_url",
    "api_key",
    "extra_headers",
    "headers",
    "callbacks",
    "success_callback",
    "mock_response",
    "mock_tool_calls",
    "custom_llm_provider",
    "proxy",
    "proxies",
    "ssl_verify",
    "model_list",
    "client",
    "context_window_fallback_dict",
    "azure_endpoint",
    "aws_sts_endpoint",
    "aws_web_identity_token",
    "aws_profile_name",
    "vertex_credentials",
    "extra_body",
    "metadata",
    "litellm_params",
    "logger_fn",
    "hf_model_name",
    "prompt_id",
    "cache",
    "stream",
    "messages",
    "timeout",
    "organization",
    "",
]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("model", ["openai/x", "bedrock/anthropic.x", "azure/x", "gemini/x"])
def test_a_name_that_is_not_listed_is_refused_with_those_that_are(name, model):
    said = rejection(model, options={name: "x"})

    assert said.startswith(f"{name} isn't allowed for ")
    assert "Allowed: " in said
    assert "temperature" in said
    assert "isn't allowed" in rejection(model, secrets={name: "x"})
    assert "isn't allowed" in rejection(model, request={name: "x"})
    assert "isn't allowed" in rejection(model, parameters={name: "x"})


REFERENCES = ["os.environ/SECRET_KEY", "oidc/env/SECRET_KEY", "OIDC/file//etc/passwd"]
REFERENCES += ["file:///etc/passwd", " os.environ/X", "oidc/google/https://x"]
FILES = ["/etc/passwd", "~/.aws/credentials", "../x", "./x", "C:\\x", "\\\\host\\share"]


@pytest.mark.parametrize("value", [*REFERENCES, *FILES])
def test_a_value_that_would_be_looked_up_is_refused_wherever_it_stands(value):
    for options in [
        {"user": value},
        {"chat_template_kwargs": {"a": value}},
        {"chat_template_kwargs": {value: True}},
        {"reasoning_effort": {"effort": value}},
    ]:
        assert "Enter the value itself" in rejection(options=options)
    models = {"models": ["x", value]}
    assert "Enter the value itself" in rejection("openrouter/x", options=models)
    order = {"provider": {"order": [value]}}
    assert "Enter the value itself" in rejection("openrouter/x", options=order)
    assert "Enter the value itself" in rejection("bedrock/x", region=value)
    assert "Enter the value itself" in rejection("azure/x", api_version=value)
    assert "provider/model" in rejection(f"gemini/{value}")


@pytest.mark.parametrize("value", REFERENCES)
def test_no_key_is_a_reference(value):
    assert "Enter the value itself" in rejection(api_key=value)
    assert "Enter the value itself" in rejection(
        "bedrock/anthropic.x", secrets={"aws_secret_access_key": value}
    )
    assert rejection(options={"stop": ["a", value]})
    assert rejection(f"openai/{value}")


def test_a_path_may_begin_a_key_of_amazon_and_a_stop():
    check(ModelSettings(model="bedrock/x", secrets={"aws_secret_access_key": "/a+b/c"}))
    check(ModelSettings(model="openai/x"), {"stop": ["/end", "\n"], "max_tokens": 10})
    check(ModelSettings(model="openai//models/llama-3", base_url="http://127.0.0.1:8000/v1"))


MISSHAPEN = [
    ({"temperature": "0.2"}, "a number"),
    ({"temperature": True}, "a number"),
    ({"max_tokens": 0}, "a whole number above 0"),
    ({"max_tokens": "many"}, "a whole number above 0"),
    ({"seed": 1.5}, "a whole number"),
    ({"thinking": {"type": "enabled", "api_base": "x"}}, "budget_tokens"),
    ({"thinking": {"type": {"a": "b"}}}, "budget_tokens"),
    ({"parallel_tool_calls": "yes"}, "true or false"),
    ({"logit_bias": {"1": "x"}}, "number values"),
    ({"stop": [{"a": 1}]}, "text values"),
    ({"stop": ["x"] * 51}, "text values"),
    ({"user": "https://evil.example/"}, "a word"),
    ({"user": ["x"]}, "a word"),
    ({"chat_template_kwargs": {"a": {"b": 1}}}, "an object"),
]


@pytest.mark.parametrize(("options", "words"), MISSHAPEN)
def test_a_value_of_another_shape_is_refused_and_not_repeated(options, words):
    said = rejection(options=options)

    assert words in said
    assert "evil" not in said


def test_nothing_about_a_value_is_said_that_could_be_a_secret():
    said = rejection("bedrock/x", secrets={"aws_secret_access_key": f"two words {KEY}"})

    assert KEY not in said


@pytest.mark.parametrize(
    "address",
    [
        "host:8000",
        "ftp://host/v1",
        "http://",
        "http://me:secret@host/v1",
        "http://host /v1",
        "http://host/v1#x",
        "http://host\\@evil/v1",
        "http://169.254.169.254/latest",
        "http://2852039166/latest",
        "http://0xa9fea9fe/latest",
        "http://169.254.43518/latest",
        "http://[fe80::1]/v1",
        "http://[::ffff:169.254.169.254]/v1",
        "http://metadata.google.internal/v1",
    ],
)
def test_an_address_is_checked_alike_wherever_it_is_typed(address):
    keys = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "s"}
    place = {"aws_bedrock_runtime_endpoint": address}

    assert parameters.address_problem(address)
    assert rejection(base_url=address)
    assert rejection("bedrock/x", secrets=keys, options=place)


@pytest.mark.parametrize(
    "region",
    [
        "evil.example/#",
        "eu-central-1.evil.example",
        "@evil",
        "EU-CENTRAL-1",
        "x",
        "eu-central-1/",
    ],
)
def test_a_region_is_no_way_to_another_host(region):
    assert rejection("bedrock/anthropic.x", region=region)
    assert rejection("bedrock/anthropic.x", options={"aws_region_name": region})
    assert rejection("vertex_ai/gemini-x", options={"vertex_location": region})


@pytest.mark.parametrize(
    "model",
    [
        "openai/https://evil.example",
        "gemini/../../x",
        "gemini//x",
        "azure/a?b",
        "azure/a#b",
        "azure/a%2f",
        "bedrock/arn:aws:bedrock:evil.example/x:123456789012:y",
        "bedrock/agentcore/arn:aws:bedrock-agentcore:evil.example:123456789012:runtime/x",
        "openai/a b",
        "openai/",
        "openai/x\n",
        f"openai/{'x' * 200}",
    ],
)
def test_a_name_of_a_model_is_no_way_to_another_host(model):
    assert "provider/model" in rejection(model)


@pytest.mark.parametrize(
    "model",
    [
        "openrouter/~anthropic/claude-sonnet-latest",
        "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
        "bedrock/us-east-1/anthropic.claude-x",
        f"bedrock/{ARN}",
        "ollama/hf.co/bartowski/Llama-3.2:Q4_K_M",
        "groq/openai/gpt-oss-120b",
        "vertex_ai/meta/llama-4",
        "openai/ft:gpt-4.1:my-org::abc",
        "gpt-4.1",
        "claude-sonnet-4-5",
    ],
)
def test_names_as_providers_write_them_are_taken(model):
    check(ModelSettings(model=model))


@pytest.mark.parametrize(
    "model", ["nobody/knows", "x/y", "huggingface/x", "gigachat/x", "/", ""]
)
def test_a_provider_that_is_not_listed_is_refused(model):
    with pytest.raises(UnknownProvider):
        check(ModelSettings(model=model))


@pytest.mark.thorough
async def test_every_provider_that_is_listed_is_one_that_litellm_knows():
    litellm = await asyncio.wrap_future(warm_up())
    assert set(PROVIDERS_BY_PREFIX) <= {
        str(getattr(p, "value", p)) for p in litellm.provider_list
    }


def account(**changes):
    told = {"type": "service_account", "client_email": "a@b", "private_key": "---"}
    return json.dumps({**told, "token_uri": value_rules.GOOGLE_TOKEN_URL, **changes})


def test_vertex_takes_the_key_of_a_service_account_and_no_other_credentials():
    check(ModelSettings(model="vertex_ai/x", secrets={"vertex_credentials": account()}))
    for wrong in [
        "/etc/passwd",
        "{}",
        account(token_uri="https://evil.example/token"),
        account(universe_domain="evil.example"),
        account(type="external_account", credential_source={"file": "/etc/passwd"}),
        account(type="external_account"),
        account(credential_source="x"),
        account(type="authorized_user"),
    ]:
        assert rejection("vertex_ai/x", secrets={"vertex_credentials": wrong})


def test_an_endpoint_of_bedrock_needs_keys_of_its_own():
    place = {"aws_bedrock_runtime_endpoint": "https://vpce.example"}
    pair = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "s"}

    assert "needs its own key" in rejection("bedrock/x", options=place)
    check(ModelSettings(model="bedrock/x", options=place, secrets=pair))
    check(ModelSettings(model="bedrock/x", options=place, api_key=KEY))


ENGINES = "vertex_ai/agent_engine/projects"


@pytest.mark.parametrize(
    ("here", "there", "is_same"),
    [
        (f"{ENGINES}/1/locations/eu/x", f"{ENGINES}/2/locations/eu/x", False),
        ("vertex_ai/gemini-x", "vertex_ai/gemini-y", True),
        ("fireworks_ai/accounts/a/models/x", "fireworks_ai/accounts/b/models/x", False),
        ("fireworks_ai/accounts/a/models/x", "fireworks_ai/accounts/a/models/y", True),
        ("baseten/abcdefgh", "baseten/hgfedcba", False),
        ("baseten/openai/x", "baseten/baseten/abcdefgh", False),
        ("baseten/openai/x", "baseten/openai/y", True),
    ],
)
def test_a_name_may_lead_to_another_account(here, there, is_same):
    one, other = (destination(ModelSettings(model=model)) for model in (here, there))

    assert (one == other) is is_same


def test_whatever_changes_the_way_changes_the_destination():
    here = ModelSettings(model="bedrock/x", region="eu-central-1", options={"temperature": 1})
    elsewhere = [
        ModelSettings(model="openai/x", region="eu-central-1"),
        ModelSettings(model="bedrock/x", region="us-east-1"),
        ModelSettings(model="bedrock/us-east-1/x", region="eu-central-1"),
        ModelSettings(model=f"bedrock/{ARN}", region="eu-central-1"),
        ModelSettings(model="bedrock/x", options={"aws_region_name": "us-east-1"}),
        ModelSettings(model="bedrock/x", region="eu-central-1", base_url="https://x"),
        ModelSettings(
            model="bedrock/x",
            region="eu-central-1",
            options={"aws_bedrock_runtime_endpoint": "https://x"},
        ),
    ]
    same = ModelSettings(model="bedrock/y", options={"aws_region_name": "eu-central-1"})

    assert all(destination(there) != destination(here) for there in elsewhere)
    assert destination(same) == destination(here)
    assert destination(here, "bedrock") != destination(here, "other")
