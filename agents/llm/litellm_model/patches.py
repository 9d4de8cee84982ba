"""What LiteLLM must not do: retry, follow redirects, look up models, hide failures."""

from functools import wraps
from importlib import import_module
from typing import Any

from .rehearsal import block_request, block_request_sync

# Factories of HTTP clients.
CLIENT_FACTORIES = (
    ("litellm.llms.custom_httpx.http_handler", "AsyncHTTPHandler", "create_client"),
    ("litellm.llms.custom_httpx.http_handler", "HTTPHandler", "create_client"),
    ("litellm.llms.openai.common_utils", "BaseOpenAILLM", "_get_async_http_client"),
    ("litellm.llms.openai.common_utils", "BaseOpenAILLM", "_get_sync_http_client"),
)
GEMINI_MODULE = "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini"
# LiteLLM maps all of these to `stop`, so that a failed or truncated reply would pass as
# complete. The values on the right are allowed by its types.
FINISH_FAILED = "finish_reason_unspecified"
FINISH_MALFORMED = "malformed_function_call"
FINISH_REASONS = {
    "error": FINISH_FAILED,
    "ERROR": FINISH_FAILED,
    "network_error": FINISH_FAILED,
    "TOO_MANY_TOOL_CALLS": FINISH_FAILED,
    "insufficient_system_resource": FINISH_FAILED,
    "MISSING_THOUGHT_SIGNATURE": FINISH_FAILED,
    FINISH_FAILED: FINISH_FAILED,
    "MALFORMED_FUNCTION_CALL": FINISH_MALFORMED,
    "MALFORMED_RESPONSE": FINISH_MALFORMED,
    "UNEXPECTED_TOOL_CALL": FINISH_MALFORMED,
    FINISH_MALFORMED: FINISH_MALFORMED,
    "model_context_window_exceeded": "length",
}


def fix_finish_reasons() -> None:
    """Fix LiteLLM's finish reasons; it also takes each of Gemini's chunks for the last."""
    helpers = import_module("litellm.litellm_core_utils.core_helpers")
    helpers._FINISH_REASON_MAP.update(FINISH_REASONS)

    def finish(_: Any, reason: str | None) -> str | None:
        return helpers.map_finish_reason(reason) if reason else None

    import_module(GEMINI_MODULE).VertexGeminiConfig._check_finish_reason = staticmethod(finish)


def disable_ollama_lookup() -> None:
    """Disable LiteLLM's lookup of Ollama models, which blocks the event loop."""
    info = import_module("litellm.llms.ollama.common_utils").OllamaModelInfo
    info.get_model_info = lambda *_, **__: None


def disable_redirects() -> None:
    """Disable redirects, to which LiteLLM would send the key."""
    for module, name, maker in CLIENT_FACTORIES:
        owner = getattr(import_module(module), name)
        setattr(owner, maker, _without_redirects(owner.__dict__[maker]))


def disable_retries() -> None:
    """Make one call one request; the engine retries, and shows it.

    LiteLLM drops `max_retries` as a parameter that the provider doesn't know, for several
    providers, and then OpenAI's client retries twice. Its own client sends a request again
    after a lost connection, although the provider may have answered the first one.
    """
    owner = import_module("litellm.llms.openai.openai").OpenAIChatCompletion
    get_client = owner._get_openai_client

    @wraps(get_client)
    def get_client_without_retries(*args: Any, **options: Any) -> Any:
        client = get_client(*args, **options)
        if client is not None:
            client.max_retries = 0
        return client

    async def reraise(*_: Any, **__: Any) -> None:
        raise  # LiteLLM calls this while it handles the error

    owner._get_openai_client = get_client_without_retries
    handler = import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    handler.single_connection_post_request = reraise


def _without_redirects(maker: Any) -> Any:
    @wraps(maker)
    def make(*args: Any, **options: Any) -> Any:
        client = maker(*args, **options)
        if client is not None:
            client.follow_redirects = False
            hooks = client.event_hooks
            is_async = isinstance(client, import_module("httpx").AsyncClient)
            first = block_request if is_async else block_request_sync
            client.event_hooks = {**hooks, "request": [first, *hooks["request"]]}
        return client

    return type(maker)(make) if isinstance(maker, staticmethod) else make
