"""Any provider that LiteLLM supports, as one stream of OpenAI chunks.

LiteLLM takes seconds to import and most of a millisecond per chunk. So it is imported once in a
thread, and OpenAI-format responses inside it are read directly here.
"""

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from contextvars import ContextVar
from functools import cache, partial, wraps
from importlib import import_module
from typing import Any

from agents.engine.turn import Chunk
from agents.llm import parameters as model_parameters

from . import openai_request
from .provider_errors import StreamFailed, StreamGarbled, explain
from .providers import find_provider

logger = logging.getLogger(__name__)

# Modules that LiteLLM would otherwise import on the event loop, during the first request.
LAZY_IMPORTS = (
    "openai.resources.chat",
    "httpcore",
    "anyio._backends._asyncio",
    "litellm.litellm_core_utils.default_encoding",
    "litellm.responses.mcp.litellm_proxy_mcp_handler",
    "litellm.proxy._types",
)
# Modules that some providers also need, by model prefix.
AWS_MODULES = ("boto3", "botocore.auth", "botocore.awsrequest", "botocore.eventstream")
PROVIDER_MODULES = {
    "bedrock": AWS_MODULES,
    "sagemaker": AWS_MODULES,
    "sagemaker_chat": AWS_MODULES,
}
# Factories of HTTP clients.
CLIENT_FACTORIES = (
    ("litellm.llms.custom_httpx.http_handler", "AsyncHTTPHandler", "create_client"),
    ("litellm.llms.custom_httpx.http_handler", "HTTPHandler", "create_client"),
    ("litellm.llms.openai.common_utils", "BaseOpenAILLM", "_get_async_http_client"),
    ("litellm.llms.openai.common_utils", "BaseOpenAILLM", "_get_sync_http_client"),
)
GEMINI_MODULE = "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini"
MAX_LINE_BYTES = 32 * 1024 * 1024
DELTA_FIELDS = (
    "content",
    "thinking_blocks",
    "reasoning_details",
    "provider_specific_fields",
    "refusal",
)
TOOL_CALL_FIELDS = ("provider_specific_fields", "extra_content")
SIGNATURE_SEPARATOR = "__thought__"  # LiteLLM also puts Gemini's signature into the call id
REASONING_READ_ONLY = {"groq"}  # reasoning is in `reasoning`, and rejected in a request

# LiteLLM maps all of these to `stop`, so that a failed or truncated reply would pass as
# complete. The values on the right are allowed by its types.
FINISH_FAILED, FINISH_MALFORMED = "finish_reason_unspecified", "malformed_function_call"
FINISH_REASONS = {
    **dict.fromkeys(
        ("error", "ERROR", "network_error", "TOO_MANY_TOOL_CALLS", FINISH_FAILED), FINISH_FAILED
    ),
    **dict.fromkeys(
        ("insufficient_system_resource", "MISSING_THOUGHT_SIGNATURE"), FINISH_FAILED
    ),
    **dict.fromkeys(
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", FINISH_MALFORMED), FINISH_MALFORMED
    ),
    "UNEXPECTED_TOOL_CALL": FINISH_MALFORMED,
    "model_context_window_exceeded": "length",
}


class LiteLLMModel:
    """A LiteLLM client.

    A key is only sent to its own address: `base_url`, or the provider's.
    """

    route = "litellm"

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        connect_timeout: float = 10.0,
        timeout: float = 600.0,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """`secrets` are parameters that must not appear in errors, such as AWS keys."""
        self.base_url = base_url
        self.parameters = dict(parameters or {})
        self.connect_timeout = connect_timeout
        self.timeout = timeout
        self._api_key = api_key
        self._secrets = dict(secrets or {})

    async def stream(
        self,
        *,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncGenerator[Chunk, None]:
        request = self._request(model, messages, tools, parameters)
        litellm = await asyncio.wrap_future(warm_up())
        try:
            if modules := PROVIDER_MODULES.get(model_parameters.provider_prefix(model)):
                await asyncio.wrap_future(_import_modules(modules))
            async with (
                aclosing(await litellm.acompletion(**request)) as answer,
                aclosing(_read_chunks(answer)) as chunks,
            ):
                async for chunk in chunks:
                    yield _add_cost(chunk, model, litellm)
        except Exception as error:
            # Not `from error`: a provider's message may contain the key, and logs print causes.
            hidden = (self._api_key, *self._secrets.values())
            raise explain(error, model=model, secrets=hidden) from None

    def _request(
        self,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        parameters: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Build the request; raise SettingNotAllowed for a forbidden parameter."""
        settings = model_parameters.ModelSettings(
            model=model,
            base_url=self.base_url,
            api_key=self._api_key,
            options=self.parameters,
            secrets=self._secrets,
        )
        model_parameters.check(settings, parameters)
        httpx = import_module("httpx")
        if provider := find_provider(model_parameters.full_name(model)):
            quirks = provider.quirks_for(model.partition("/")[2])
            messages = openai_request.adapt_order(messages, quirks)
        return {
            **self.parameters,
            **parameters,
            **self._secrets,
            **model_parameters.blank_credentials(settings),
            **({"tools": tools} if tools else {}),
            "model": model_parameters.full_name(model),
            "messages": messages,
            "api_key": model_parameters.resolve_key(settings, os.environ),
            "base_url": model_parameters.resolve_address(settings, os.environ),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_retries": 0,
            "num_retries": 0,
            "timeout": httpx.Timeout(self.timeout, connect=self.connect_timeout),
        }


@cache
def warm_up() -> "Future[Any]":
    """Start importing LiteLLM in a daemon thread."""
    return _load_in_thread(_import_litellm)


@cache
def _import_modules(modules: tuple[str, ...]) -> "Future[Any]":
    return _load_in_thread(lambda: [import_module(name) for name in modules])


@cache
def warm_up_provider(prefix: str) -> "Future[Any]":
    """Make a dry run of a provider, because LiteLLM imports much of itself on first use.

    No request leaves the process.
    """
    return _load_in_thread(partial(_dry_run, prefix))


_is_rehearsal: ContextVar[bool] = ContextVar("is_rehearsal", default=False)
UNREACHABLE_URL = "http://127.0.0.1:9"
AWS_DUMMY_OPTIONS: dict[str, Any] = {
    "parameters": {
        "aws_region_name": "us-east-1",
        "aws_bedrock_runtime_endpoint": UNREACHABLE_URL,
    },
    "secrets": {"aws_access_key_id": "rehearsal", "aws_secret_access_key": "rehearsal"},
}


def _dry_run(prefix: str) -> None:
    litellm = warm_up().result()
    if modules := PROVIDER_MODULES.get(prefix):
        _import_modules(modules).result()
    _is_rehearsal.set(True)  # only in this thread
    options = AWS_DUMMY_OPTIONS if prefix == "bedrock" else {"base_url": UNREACHABLE_URL}
    name = "anthropic.claude" if prefix == "bedrock" else "rehearsal"
    llm = LiteLLMModel(**options)
    hello = [{"role": "user", "content": "."}]
    with suppress(Exception):  # it is meant to fail, and each provider fails differently
        request = llm._request(f"{prefix}/{name}", hello, None, {})
        asyncio.run(litellm.acompletion(**request))


async def _block_request(request: Any) -> None:
    _block_request_sync(request)


def _block_request_sync(request: Any) -> None:
    if _is_rehearsal.get():
        raise import_module("httpx").ConnectError("A rehearsal.", request=request)


def _load_in_thread(load: Callable[[], Any]) -> "Future[Any]":
    loading: Future[Any] = Future()
    # Marked as running, so that cancelling one waiting run doesn't cancel it for all.
    loading.set_running_or_notify_cancel()
    threading.Thread(
        target=_complete_load, args=(loading, load), name="litellm", daemon=True
    ).start()
    return loading


def _complete_load(loading: "Future[Any]", load: Callable[[], Any]) -> None:
    try:
        loading.set_result(load())
    except BaseException as error:
        loading.set_exception(error)


def _import_litellm() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise it fetches prices, blocking
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"  # likewise, at the first reply
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # otherwise it loads any .env it finds
    litellm: Any = import_module("litellm")
    litellm.disable_hf_tokenizer_download = True
    litellm.disable_aiohttp_transport = True
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    litellm.modify_params = True  # some providers require the tools that the history used
    litellm.callbacks = []
    for name in LAZY_IMPORTS:
        import_module(name)
    _fix_finish_reasons()
    _disable_ollama_lookup()
    _disable_redirects()
    _disable_retries()
    return litellm


def _fix_finish_reasons() -> None:
    """Fix LiteLLM's finish reasons; it also takes each of Gemini's chunks for the last."""
    helpers = import_module("litellm.litellm_core_utils.core_helpers")
    helpers._FINISH_REASON_MAP.update(FINISH_REASONS)

    def finish(_: Any, reason: str | None) -> str | None:
        return helpers.map_finish_reason(reason) if reason else None

    import_module(GEMINI_MODULE).VertexGeminiConfig._check_finish_reason = staticmethod(finish)


def _disable_ollama_lookup() -> None:
    """Disable LiteLLM's lookup of Ollama models, which blocks the event loop."""
    info = import_module("litellm.llms.ollama.common_utils").OllamaModelInfo
    info.get_model_info = lambda *_, **__: None


def _disable_redirects() -> None:
    """Disable redirects, to which LiteLLM would send the key."""
    for module, name, maker in CLIENT_FACTORIES:
        owner = getattr(import_module(module), name)
        setattr(owner, maker, _without_redirects(owner.__dict__[maker]))


def _disable_retries() -> None:
    """Make one call one request; the engine retries, and shows it.

    LiteLLM drops `max_retries` as a parameter that the provider doesn't know, for several
    providers, and then OpenAI's client retries twice. Its own client sends a request again
    after a lost connection, although the provider may have answered the first one.
    """
    owner = import_module("litellm.llms.openai.openai").OpenAIChatCompletion
    owner._get_openai_client = _without_retries(owner._get_openai_client)
    handler = import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    handler.single_connection_post_request = _reraise


def _without_retries(get_client: Any) -> Any:
    @wraps(get_client)
    def get(*args: Any, **options: Any) -> Any:
        client = get_client(*args, **options)
        if client is not None:
            client.max_retries = 0
        return client

    return get


async def _reraise(*_: Any, **__: Any) -> None:
    raise  # LiteLLM calls this while it handles the error


def _without_redirects(maker: Any) -> Any:
    @wraps(maker)
    def make(*args: Any, **options: Any) -> Any:
        client = maker(*args, **options)
        if client is not None:
            client.follow_redirects = False
            hooks = client.event_hooks
            is_async = isinstance(client, import_module("httpx").AsyncClient)
            first = _block_request if is_async else _block_request_sync
            client.event_hooks = {**hooks, "request": [first, *hooks["request"]]}
        return client

    return type(maker)(make) if isinstance(maker, staticmethod) else make


def _read_chunks(answer: Any) -> AsyncGenerator[Chunk, None]:
    inner = answer.completion_stream
    is_wire = isinstance(inner, import_module("openai").AsyncStream)
    if is_wire and "text-completion" not in str(answer.custom_llm_provider):
        return _read_wire(inner.response)
    return _convert_chunks(answer)


async def _read_wire(response: Any) -> AsyncGenerator[Chunk, None]:
    """Yield events of an OpenAI-format response; an end without a finish reason is an error."""
    has_started = ended = False
    try:
        async with aclosing(_read_lines(response)) as lines:
            async for line in lines:
                data = _event_data(line)
                if data == b"[DONE]":
                    ended = True
                    await _drain(lines)
                elif data:
                    chunk = _parse_chunk(data)
                    has_started, ended = True, ended or _is_final(chunk)
                    yield chunk
    except import_module("httpx").HTTPError:
        if not ended:
            raise
    if has_started and not ended:
        raise EOFError


def _event_data(line: bytes) -> bytes:
    """Return an event's data; some servers send one JSON object, also for errors."""
    if line.startswith(b"data:"):
        return line[5:].strip()
    if line.startswith(b"error: {"):  # llama.cpp
        return b'{"error":%b}' % line[6:].strip()
    return line if line.startswith(b"{") else b""


async def _read_lines(response: Any) -> AsyncGenerator[bytes, None]:
    """Split at line feeds only, because JSON may contain other line separators."""
    rest = b""
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line
            if len(rest) > MAX_LINE_BYTES:
                raise StreamGarbled("a line without an end")
    yield rest


async def _drain(lines: AsyncGenerator[bytes, None]) -> None:
    """Read the rest, so that the connection can be reused, but only briefly."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            async for _ in lines:
                pass


def _parse_chunk(data: bytes) -> Chunk:
    try:
        event = json.loads(data.decode(errors="replace"))
        failed = event.get("error") or (event if event.get("object") == "error" else None)
        usage = event.get("usage")
        choices = [_to_choice(choice) for choice in event.get("choices") or ()]
    except (AttributeError, TypeError, ValueError) as error:
        raise StreamGarbled("an event that is not a chunk") from error
    if failed:
        raise StreamFailed(failed)
    used = {"usage": usage} if isinstance(usage, dict) else {}
    return {"id": event.get("id"), "model": event.get("model"), "choices": choices, **used}


def _to_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    is_whole = choice.get("delta") is None and choice.get("message")
    key = "message" if is_whole else "delta"
    return {
        "index": choice.get("index") or 0,
        key: dict(choice.get(key) or {}),
        "finish_reason": choice.get("finish_reason"),
    }


def _is_final(chunk: Chunk) -> bool:
    return any(choice["finish_reason"] for choice in chunk["choices"])


async def _convert_chunks(answer: Any) -> AsyncGenerator[Chunk, None]:
    """Convert LiteLLM's chunks field by field, because dumping them costs far more.

    If the provider never sent a finish reason, LiteLLM reports `stop`, which is an error here.
    """
    has_started, reasons = False, _track_finish_reasons(answer)
    thoughts = (
        "reasoning"
        if answer.custom_llm_provider in REASONING_READ_ONLY
        else "reasoning_content"
    )
    async for chunk in answer:
        choices = [
            {
                "index": choice.index,
                "delta": _to_delta(choice.delta, thoughts),
                "finish_reason": reasons[-1] if choice.finish_reason and reasons else None,
            }
            for choice in chunk.choices
        ]
        has_started = has_started or any(choice["delta"] for choice in choices)
        usage = getattr(chunk, "usage", None)
        used = {"usage": usage.model_dump(exclude_none=True)} if usage else {}
        yield {"id": chunk.id, "model": chunk.model, "choices": choices, **used}
        # Chunks that have already arrived are read without waiting, and slowly: yield to others
        # in between.
        await asyncio.sleep(0)
    if has_started and not reasons:
        raise EOFError


def _track_finish_reasons(answer: Any) -> list[str]:
    """Collect finish reasons, which LiteLLM forgets if more chunks follow."""
    reasons: list[str] = []
    create = answer.chunk_creator

    def create_chunk(chunk: Any) -> Any:
        created = create(chunk=chunk)
        if reason := answer.received_finish_reason or answer.intermittent_finish_reason:
            reasons.append(reason)
        return created

    answer.chunk_creator = create_chunk
    return reasons


def _to_delta(delta: Any, thoughts: str) -> dict[str, Any]:
    fields = {name: getattr(delta, name, None) for name in DELTA_FIELDS}
    fields[thoughts] = getattr(delta, "reasoning_content", None)
    fields["tool_calls"] = [
        _to_tool_call(call) for call in getattr(delta, "tool_calls", None) or ()
    ]
    return {name: value for name, value in fields.items() if value}


def _to_tool_call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    fields = {name: value for name in TOOL_CALL_FIELDS if (value := getattr(call, name, None))}
    id = call.id and call.id.partition(SIGNATURE_SEPARATOR)[0]
    return {"index": call.index, "id": id, "type": "function", "function": function, **fields}


def _add_cost(chunk: Chunk, model: str, litellm: Any) -> Chunk:
    """Add the cost in dollars, if the price is known and not already included."""
    usage = chunk.get("usage")
    if not usage or usage.get("cost") is not None:
        return chunk
    try:
        cost = sum(litellm.cost_per_token(model=model, usage_object=litellm.Usage(**usage)))
    except Exception as error:
        # It raises anything for an unknown name; a missing price must not fail the reply.
        logger.debug("No price is known for %r: %s", model, type(error).__name__)
        return chunk
    # LiteLLM returns 0 for some unknown names too.
    return {**chunk, "usage": {**usage, "cost": cost}} if cost else chunk
