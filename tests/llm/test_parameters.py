"""Which settings are passed to a provider, and where secrets are sent."""

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
def test_an_unknown_parameter_is_rejected_with_the_known_ones(name, model):
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
def test_references_to_environment_variables_or_files_are_rejected_anywhere(value):
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
def test_a_key_that_is_a_reference_is_rejected(value):
    assert "Enter the value itself" in rejection(api_key=value)
    assert "Enter the value itself" in rejection(
        "bedrock/anthropic.x", secrets={"aws_secret_access_key": value}
    )
    assert rejection(options={"stop": ["a", value]})
    assert rejection(f"openai/{value}")


def test_aws_keys_and_stop_sequences_may_start_with_a_slash():
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
def test_a_value_of_the_wrong_type_is_rejected_without_quoting_it(options, words):
    said = rejection(options=options)

    assert words in said
    assert "evil" not in said


def test_error_messages_do_not_quote_secrets():
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
def test_urls_are_checked_the_same_in_every_setting(address):
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
def test_a_region_cannot_change_the_host(region):
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
def test_a_model_name_cannot_change_the_host(model):
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
def test_real_model_names_are_accepted(model):
    check(ModelSettings(model=model))


@pytest.mark.parametrize(
    "model", ["nobody/knows", "x/y", "huggingface/x", "gigachat/x", "/", ""]
)
def test_an_unknown_provider_is_rejected(model):
    with pytest.raises(UnknownProvider):
        check(ModelSettings(model=model))


@pytest.mark.thorough
async def test_every_listed_provider_is_known_to_litellm():
    litellm = await asyncio.wrap_future(warm_up())
    assert set(PROVIDERS_BY_PREFIX) <= {
        str(getattr(p, "value", p)) for p in litellm.provider_list
    }


def account(**changes):
    told = {"type": "service_account", "client_email": "a@b", "private_key": "---"}
    return json.dumps({**told, "token_uri": value_rules.GOOGLE_TOKEN_URL, **changes})


def test_vertex_accepts_only_service_account_keys():
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


def test_a_bedrock_endpoint_needs_its_own_keys():
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
def test_a_model_name_with_an_account_changes_the_destination(here, there, is_same):
    one, other = (destination(ModelSettings(model=model)) for model in (here, there))

    assert (one == other) is is_same


def test_every_setting_that_changes_the_route_changes_the_destination():
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
