"""Real error responses of providers and model servers, and our messages and advice."""

import json

import pytest

from agents.engine.errors import (
    AgentError,
    ModelError,
    ModelLoading,
    ProviderFailed,
    QuotaExhausted,
    RateLimited,
)
from agents.engine.resilience.retry import RetryPolicy
from agents.llm import error_causes as causes
from agents.llm.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.provider_errors import CHECK_KEY_ADVICE
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


def google_error(message, quota, delay="34s"):
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        "quotaId": quota,
        "quotaDimensions": {"location": "global", "model": "gemini-2.5-flash"},
        "quotaValue": "10",
    }
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [violation],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}
    return {"error": {**error, "details": details}}


def proxied(inner, code):
    """Return a provider's error as a LiteLLM proxy passes it on."""
    note = ". Received Model Group=fast\nAvailable Model Group Fallbacks=None"
    return {"error": {"message": inner + note, "type": None, "param": None, "code": code}}


GEMINI_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more "
    "information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
)
OPENAI_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more "
    "information on this error, read the docs: "
    "https://platform.openai.com/docs/guides/error-codes/api-errors."
)
ANTHROPIC_CREDIT = (
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing "
    "to upgrade or purchase credits."
)
VLLM_TOOLS = (
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
)
# Name: (model, status, body, error, words in the message, advice)
ROWS = {
    "OpenAI, no quota": (
        "openai/gpt-4.1",
        429,
        openai_error(OPENAI_QUOTA, type="insufficient_quota", code="insufficient_quota"),
        (QuotaExhausted, "quota for 'openai/gpt-4.1' is used up: You exceeded"),
        causes.ADD_CREDIT,
    ),
    "OpenAI, account not active": (
        "openai/gpt-4.1",
        429,
        openai_error(
            "Your account is not active, please check your billing details on our website.",
            code="billing_not_active",
        ),
        (QuotaExhausted, "is used up: Your account is not active"),
        causes.ADD_CREDIT,
    ),
    "OpenAI, requests per minute": (
        "openai/gpt-4.1",
        429,
        openai_error(
            "Rate limit reached for gpt-4.1 in organization org-1 on requests per min (RPM): "
            "Limit 3, Used 3, Requested 1. Please try again in 20s.",
            type="requests",
            code="rate_limit_exceeded",
        ),
        (RateLimited, "is rate limited by its provider: Rate limit reached"),
        "Try again in 20 s.",
    ),
    "Groq, tokens per day": (
        "groq/openai/gpt-oss-120b",
        429,
        openai_error(
            "Rate limit reached for model `openai/gpt-oss-120b` in organization `org_1` on "
            "tokens per day (TPD): Limit 200000, Used 199630, Requested 1386. Please try again "
            "in 7m18.912s.",
            type="tokens",
            code="rate_limit_exceeded",
        ),
        (RateLimited, "is rate limited by its provider"),
        "Try again in 438.912 s.",
    ),
    "Azure, rate limit": (
        "azure/mine",
        429,
        {
            "error": {
                "code": "429",
                "message": "Requests to the ChatCompletions_Create Operation under Azure "
                "OpenAI API version 2024-10-21 have exceeded token rate limit of your current "
                "OpenAI S0 pricing tier. Please retry after 7 seconds.",
            }
        },
        (RateLimited, "is rate limited by its provider"),
        "Try again in 7 s.",
    ),
    "Azure, no quota": (
        "azure/mine",
        403,
        {
            "error": {
                "code": "403",
                "message": "Out of call volume quota. Quota will be replenished in 3.12:00:00.",
            }
        },
        (QuotaExhausted, "is used up: Out of call volume quota"),
        causes.ADD_CREDIT,
    ),
    "Azure, content filter": (
        "azure/mine",
        400,
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering Azure "
                "OpenAI's content management policy. Please modify your prompt and retry.",
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        (ModelError, "blocked the request: The response was filtered"),
        causes.REPHRASE,
    ),
    "Anthropic, no credit": (
        anthropic_wire.MODEL,
        400,
        anthropic_wire.error("invalid_request_error", ANTHROPIC_CREDIT),
        (QuotaExhausted, "is used up: Your credit balance is too low"),
        causes.ADD_CREDIT,
    ),
    "Anthropic, spending limit": (
        anthropic_wire.MODEL,
        400,
        anthropic_wire.error(
            "invalid_request_error",
            "You have reached your specified API usage limits. You will regain access on "
            "2026-12-01 at 00:00 UTC.",
        ),
        (QuotaExhausted, "You will regain access on 2026-12-01"),
        causes.ADD_CREDIT,
    ),
    "Gemini, per day": (
        gemini_wire.MODEL,
        429,
        google_error(GEMINI_QUOTA, "GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
        (QuotaExhausted, "is used up: You exceeded your current quota"),
        causes.WAIT_FOR_RESET,
    ),
    "Gemini, per minute": (
        gemini_wire.MODEL,
        429,
        google_error(GEMINI_QUOTA, "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
        (RateLimited, "is rate limited by its provider: You exceeded your current quota"),
        "Try again in 34 s.",
    ),
    "OpenRouter, no credit": (
        "openrouter/x/y",
        402,
        {
            "error": {
                "message": "Insufficient credits. Add more using "
                "https://openrouter.ai/settings/credits",
                "code": 402,
            }
        },
        (QuotaExhausted, "is used up: Insufficient credits."),
        causes.ADD_CREDIT,
    ),
    "OpenRouter, free models per day": (
        "openrouter/x/y:free",
        429,
        {
            "error": {
                "message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock "
                "1000 free model requests per day",
                "code": 429,
                "metadata": {"headers": {"X-RateLimit-Limit": "50"}, "provider_name": None},
            }
        },
        (QuotaExhausted, "free-models-per-day"),
        causes.WAIT_FOR_RESET,
    ),
    "OpenRouter, free models per minute": (
        "openrouter/x/y:free",
        429,
        {"error": {"message": "Rate limit exceeded: free-models-per-min.", "code": 429}},
        (RateLimited, "free-models-per-min"),
        "Try again later, or choose another model.",
    ),
    "OpenRouter, moderation": (
        "openrouter/x/y",
        403,
        {
            "error": {
                "message": "x/y requires moderation on OpenRouter. Your input was flagged.",
                "code": 403,
                "metadata": {
                    "reasons": ["violence"],
                    "flagged_input": "No models loaded",
                    "provider_name": "X",
                    "model_slug": "x/y",
                },
            }
        },
        (ModelError, "blocked the request: x/y requires moderation"),
        causes.REPHRASE,
    ),
    "OpenRouter, no tools": (
        "openrouter/x/y",
        404,
        {
            "error": {
                "message": "No endpoints found that support tool use. To learn more about "
                "provider routing, visit: https://openrouter.ai/docs/provider-routing",
                "code": 404,
            }
        },
        (ModelError, "can't call tools: No endpoints found"),
        causes.USE_REACT,
    ),
    "OpenRouter, data policy": (
        "openrouter/x/y",
        404,
        {
            "error": {
                "message": "No endpoints found matching your data policy (Free model "
                "training). Configure: https://openrouter.ai/settings/privacy",
                "code": 404,
            }
        },
        (ModelError, "No host is available for 'openrouter/x/y'"),
        causes.CHECK_PRIVACY,
    ),
    "OpenRouter, no provider": (
        "openrouter/x/y",
        404,
        {
            "error": {
                "message": "No allowed providers are available for the selected model.",
                "code": 404,
            }
        },
        (ModelError, "No host is available for 'openrouter/x/y'"),
        causes.CHECK_ROUTING,
    ),
    "OpenRouter, provider away": (
        "openrouter/x/y",
        502,
        {
            "error": {
                "message": "Provider returned error",
                "code": 502,
                "metadata": {"raw": "upstream connect error", "provider_name": "X"},
            }
        },
        (ProviderFailed, "returned an error (HTTP 502): Provider returned error"),
        "Try again later, or choose another model.",
    ),
    "DeepSeek, no credit": (
        "deepseek/deepseek-chat",
        402,
        openai_error(
            "Insufficient Balance", type="unknown_error", code="invalid_request_error"
        ),
        (QuotaExhausted, "is used up: Insufficient Balance"),
        causes.ADD_CREDIT,
    ),
    "xAI, no credit": (
        "xai/grok-4.7",
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Your team 1 has either used all available credits or reached its monthly "
            "spending limit.",
        },
        (QuotaExhausted, "used all available credits"),
        causes.ADD_CREDIT,
    ),
    "vLLM, no tool parser": (
        "hosted_vllm/some",
        400,
        {"object": "error", "message": VLLM_TOOLS, "type": "BadRequestError", "code": 400},
        (ModelError, "'hosted_vllm/some' can't call tools: \"auto\" tool choice"),
        causes.VLLM_FLAGS,
    ),
    "vLLM, no tool parser, newer": (
        "openai/some",
        400,
        {
            "error": {
                "message": VLLM_TOOLS,
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
        (ModelError, "can't call tools"),
        causes.VLLM_FLAGS,
    ),
    "vLLM, context": (
        "hosted_vllm/some",
        400,
        {
            "error": {
                "message": "This model's maximum context length is 4096 tokens. However, your "
                "request has 5012 input tokens. Please reduce the length of the input.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
        (ModelError, "The chat is too long for 'hosted_vllm/some'"),
        causes.RAISE_VLLM_CONTEXT,
    ),
    "vLLM, no images": (
        "hosted_vllm/some",
        400,
        {
            "error": {
                "message": "some is not a multimodal model",
                "type": "BadRequestError",
                "code": 400,
            }
        },
        (ModelError, "can't read images: some is not a multimodal model"),
        causes.CHOOSE_VISION,
    ),
    "vLLM, unknown model": (
        "hosted_vllm/some",
        404,
        {
            "error": {
                "message": "The model `some` does not exist.",
                "type": "NotFoundError",
                "code": 404,
            }
        },
        (ModelError, "can't find 'hosted_vllm/some': The model `some` does not exist."),
        causes.CHECK_NAME,
    ),
    "llama.cpp, no --jinja": (
        "llamafile/some",
        500,
        {
            "error": {
                "code": 500,
                "message": "tools param requires --jinja flag",
                "type": "server_error",
            }
        },
        (ModelError, "can't call tools: tools param requires --jinja flag"),
        causes.LLAMA_SERVER_FLAG,
    ),
    "llama.cpp, context": (
        "llamafile/some",
        400,
        {
            "error": {
                "code": 400,
                "message": "request (9002 tokens) exceeds the available context size (8192 "
                "tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9002,
                "n_ctx": 8192,
            }
        },
        (ModelError, "The chat is too long for 'llamafile/some'"),
        causes.RAISE_LLAMA_CONTEXT,
    ),
    "llama.cpp, loading": (
        "llamafile/some",
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        (ModelLoading, "'llamafile/some' is still loading"),
        causes.WAIT_FOR_MODEL,
    ),
    "llama.cpp, no images": (
        "llamafile/some",
        500,
        {
            "error": {
                "code": 500,
                "message": "image input is not supported - hint: if this is unexpected, you "
                "may need to provide the mmproj",
                "type": "server_error",
            }
        },
        (ModelError, "can't read images"),
        causes.ADD_PROJECTOR,
    ),
    "LM Studio, nothing loaded": (
        "lm_studio/some",
        404,
        {
            "error": {
                "message": "No models loaded. Please load a model in the developer page or use "
                "the `lms load` command.",
                "type": "invalid_request_error",
                "param": "model",
                "code": "model_not_found",
            }
        },
        (ModelError, "The server hasn't loaded 'lm_studio/some'"),
        causes.LOAD_IN_STUDIO,
    ),
    "LM Studio, context": (
        "lm_studio/some",
        400,
        {
            "error": "Trying to keep the first 5012 tokens when context the overflows. "
            "However, the model is loaded with context length of only 4096 tokens, which is "
            "not enough. Try to load the model with a larger context length"
        },
        (ModelError, "The chat is too long for 'lm_studio/some'"),
        causes.RAISE_STUDIO_CONTEXT,
    ),
    "Ollama, no tools": (
        ollama_wire.MODEL,
        400,
        {"error": "registry.ollama.ai/library/gemma:2b does not support tools"},
        (ModelError, "can't call tools: registry.ollama.ai/library/gemma:2b does not support"),
        causes.USE_REACT,
    ),
    "Ollama, unknown model": (
        ollama_wire.MODEL,
        404,
        {"error": "model 'wire' not found"},
        (ModelError, "can't find 'ollama_chat/wire'"),
        "Run “ollama pull wire” on the server, or choose another model.",
    ),
    "Ollama's other address, unknown model": (
        "openai/qwen3:8b",
        404,
        openai_error('model "qwen3:8b" not found, try pulling it first', type="api_error"),
        (ModelError, "can't find 'openai/qwen3:8b'"),
        "Run “ollama pull qwen3:8b” on the server, or choose another model.",
    ),
    "LiteLLM proxy, no quota behind it": (
        "litellm_proxy/fast",
        429,
        proxied(
            f"litellm.RateLimitError: RateLimitError: OpenAIException - {OPENAI_QUOTA} "
            "code: insufficient_quota",
            "429",
        ),
        (QuotaExhausted, "is used up: You exceeded your current quota"),
        causes.ADD_CREDIT,
    ),
    "LiteLLM proxy, wrong key behind it": (
        "litellm_proxy/fast",
        401,
        proxied(
            "litellm.AuthenticationError: AnthropicException - "
            + json.dumps(anthropic_wire.error("authentication_error", "invalid x-api-key")),
            "401",
        ),
        (ModelError, "rejected the API key: invalid x-api-key"),
        causes.CHECK_PROXY_KEY,
    ),
    "LiteLLM proxy, wrong key of ours": (
        "litellm_proxy/fast",
        401,
        openai_error(
            "Authentication Error, Invalid proxy server token passed. Unable to find token in "
            "cache or `LiteLLM_VerificationTokenTable`",
            type="token_not_found_in_db",
            code="401",
        ),
        (ModelError, "rejected the API key: Authentication Error"),
        CHECK_KEY_ADVICE,
    ),
    "LiteLLM proxy, budget": (
        "litellm_proxy/fast",
        400,
        openai_error(
            "Budget has been exceeded! Current cost: 0.02, Max budget: 0.01",
            type="budget_exceeded",
            code="400",
        ),
        (QuotaExhausted, "is used up: Budget has been exceeded!"),
        causes.RAISE_BUDGET,
    ),
    "LiteLLM proxy, unknown model": (
        "litellm_proxy/fast",
        400,
        openai_error(
            "/chat/completions: Invalid model name passed in model=fast. Call `/v1/models` to "
            "view available models for your key.",
            code="400",
        ),
        (ModelError, "can't find 'litellm_proxy/fast'"),
        causes.CHECK_PROXY_NAME,
    ),
    "Bedrock, tokens per day": (
        "openai/bedrock-behind-a-gateway",
        429,
        {"message": "Too many tokens per day, please wait before trying again."},
        (QuotaExhausted, "Too many tokens per day"),
        causes.WAIT_FOR_RESET,
    ),
    "any, too large": (
        "openai/some",
        413,
        openai_error("Payload too large"),
        (ModelError, "The chat is too long for 'openai/some': Payload too large"),
        causes.NEW_CHAT,
    ),
}
DIRECT = {"openai", "groq", "openrouter", "deepseek", "xai", "hosted_vllm", "llamafile"}
DIRECT |= {"lm_studio", "litellm_proxy"}
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
    (row, route)
    for row, (model, *_) in ROWS.items()
    for route in (DirectModel, LiteLLMModel)
    if route is LiteLLMModel or model.partition("/")[0] in DIRECT
]


@pytest.mark.parametrize(
    ("row", "route"), one_in(3, ROUTES), ids=lambda value: getattr(value, "__name__", value)
)
async def test_advice_fits_the_cause(row, route):
    model, status, body, (kind, words), advice = ROWS[row]

    error = await refusal(route, model, answer(status, body))

    assert type(error) is kind, str(error)
    assert words in str(error)
    assert error.advice == advice
    assert "{" not in str(error)
    assert "litellm" not in str(error).replace(repr(model), "").lower().replace(
        "litellm_verificationtokentable", ""
    )


@pytest.mark.parametrize("row", ROWS)
async def test_only_temporary_errors_are_retried(row):
    _, _, _, (kind, _), _ = ROWS[row]

    waits = RetryPolicy().wait(kind(), 1) is not None
    assert waits == (kind in (RateLimited, ProviderFailed, ModelLoading))


async def test_a_loading_model_is_retried_after_the_servers_time():
    model, status, body, *_ = ROWS["llama.cpp, loading"]
    unsaid = await refusal(DirectModel, model, answer(status, body))
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
