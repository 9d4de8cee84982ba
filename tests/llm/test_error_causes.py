"""Real error responses of providers and model servers, and our messages and advice."""

import json
from pathlib import Path

import pytest

from agents.engine import errors
from agents.engine.errors import AgentError, QuotaExhausted
from agents.engine.resilience.retry import RetryPolicy
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.wire import error_causes, provider_errors
from tests.llm import anthropic_wire, gemini_wire, ollama_wire
from tests.sampling import one_in
from tests.wire import Reply, WireServer, chunk

pytestmark = [
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

HELLO = [{"role": "user", "content": "hello"}]


def openai_error(message, **more):
    return {"error": {"message": message, "type": "error", "param": None, "code": None, **more}}


OPENAI_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more "
    "information on this error, read the docs: "
    "https://platform.openai.com/docs/guides/error-codes/api-errors."
)
# Real responses of a model, with our message and advice, or the name of that.
ROWS = {
    row["name"]: row
    for row in json.loads(Path(__file__).with_name("error_causes.json").read_text())
}
ADVICE = vars(provider_errors) | vars(error_causes)
DIRECT = {"openai", "groq", "openrouter", "deepseek", "xai", "hosted_vllm", "llamafile"}
DIRECT |= {"lm_studio", "litellm_proxy", "anthropic", "gemini", "ollama_chat"}
WIRES = {"anthropic": anthropic_wire, "gemini": gemini_wire, "ollama_chat": ollama_wire}


def answer(status, body):
    data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    return Reply(parts=(data,), status=status, headers=headers)


def address(model, server):
    wire = WIRES.get(model.partition("/")[0])
    return wire.address(server) if wire else server.url


async def refusal(route, model, *replies):
    options = {"parameters": {"api_version": "2024-10-21"}} if model.startswith("azure") else {}
    async with WireServer(replies) as server:
        llm = route("sk-of-this-test", address(model, server), **options)
        with pytest.raises(AgentError) as caught:
            [_ async for _ in llm.stream(model=model, messages=HELLO)]
    assert len(server.requests) == 1
    return caught.value


ROUTES = [
    (name, route)
    for name, row in ROWS.items()
    for route in (DirectModel, LiteLLMModel)
    if route is LiteLLMModel or row["model"].partition("/")[0] in DIRECT
]


@pytest.mark.parametrize(
    ("name", "route"), one_in(3, ROUTES), ids=lambda value: getattr(value, "__name__", value)
)
async def test_advice_fits_the_cause(name, route):
    row = ROWS[name]
    model = row["model"]

    error = await refusal(route, model, answer(row["status"], row["body"]))

    assert type(error) is getattr(errors, row["error"]), str(error)
    assert row["says"] in str(error)
    assert error.advice == ADVICE.get(row["advice"], row["advice"])
    assert "{" not in str(error)
    assert "litellm" not in str(error).replace(repr(model), "").lower().replace(
        "litellm_verificationtokentable", ""
    )


@pytest.mark.parametrize("kind", sorted({row["error"] for row in ROWS.values()}))
def test_only_temporary_errors_are_retried(kind):
    waits = RetryPolicy().wait(getattr(errors, kind)(), 1) is not None
    assert waits == (kind in ("RateLimited", "ProviderFailed", "ModelLoading"))


async def test_a_loading_model_is_retried_after_the_servers_time():
    row = ROWS["llama.cpp, loading"]
    unsaid = await refusal(DirectModel, row["model"], answer(row["status"], row["body"]))
    told = {"error": "Model x/y is currently loading", "estimated_time": 20.5}
    said = await refusal(DirectModel, "openai/x", answer(503, told))

    assert (RetryPolicy().wait(unsaid, 1), RetryPolicy().wait(said, 1)) == (10, 20.5)


async def test_an_exhausted_quota_in_mid_stream_is_not_a_rate_limit():
    body = openai_error(OPENAI_QUOTA, type="insufficient_quota", code="insufficient_quota")
    error = await refusal(
        DirectModel, "openai/some", Reply(parts=(chunk({"content": "Half"}), body))
    )

    assert type(error) is QuotaExhausted


async def test_the_users_text_is_not_read_as_the_cause():
    """Some servers repeat the request in their error."""
    loc = ["body", "messages", 0]
    detail = [{"loc": loc, "msg": "Field required", "input": "insufficient_quota? --jinja!"}]
    error = await refusal(DirectModel, "openai/some", answer(422, {"detail": detail}))

    assert str(error).endswith("rejected the request: body.messages.0: Field required")


@pytest.mark.parametrize("code", ["²", "9" * 5_000, None, ""])
def test_a_code_that_is_no_status_is_a_server_error(code):
    assert provider_errors.StreamFailed({"code": code}).status_code == 500
