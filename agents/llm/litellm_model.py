"""Any provider that LiteLLM knows, as one stream of OpenAI-wire chunks.

LiteLLM costs seconds to import and, read as it comes, most of a millisecond a chunk. So it is
imported once in a thread, and where what it holds is an OpenAI-wire response, the bytes of
that response are read here.
"""

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from functools import cache
from importlib import import_module
from typing import Any

from agents.engine.turn import Chunk
from agents.llm.failures import StreamFailed, StreamGarbled, explain

logger = logging.getLogger(__name__)

# What LiteLLM would otherwise import on the event loop, in the middle of the first request.
IMPORTED_LATE = (
    "openai.resources.chat",
    "httpcore",
    "anyio._backends._asyncio",
    "litellm.litellm_core_utils.default_encoding",
    "litellm.responses.mcp.litellm_proxy_mcp_handler",
    "litellm.proxy._types",
)
NO_KEY = "not-needed"
LONGEST_LINE = 32 * 1024 * 1024
DELTA = ("content", "reasoning_content", "thinking_blocks", "refusal")


class LiteLLMModel:
    """A key goes only to the address it was given with: `base_url`, or the provider's own."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        connect_timeout: float = 10.0,
        timeout: float = 600.0,
    ) -> None:
        self.base_url = base_url
        self.parameters = dict(parameters or {})
        self.connect_timeout = connect_timeout
        self.timeout = timeout
        self._api_key = api_key

    async def stream(
        self,
        *,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncGenerator[Chunk, None]:
        litellm = await asyncio.wrap_future(warm())
        request = self._request(model, messages, tools, parameters)
        try:
            async with (
                aclosing(await litellm.acompletion(**request)) as answer,
                aclosing(_chunks(answer)) as chunks,
            ):
                async for chunk in chunks:
                    yield _priced(chunk, model, litellm)
        except Exception as error:
            # Not `from error`: what a provider says may hold the key, and logs print causes.
            raise explain(error, model=model, secret=self._api_key) from None

    def _request(
        self,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        parameters: Mapping[str, Any],
    ) -> dict[str, Any]:
        httpx = import_module("httpx")
        return {
            **self.parameters,
            **parameters,
            **({"tools": tools} if tools else {}),
            "model": model,
            "messages": messages,
            "api_key": self._api_key or (NO_KEY if self.base_url else None),
            "base_url": self.base_url,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_retries": 0,
            "num_retries": 0,
            "timeout": httpx.Timeout(self.timeout, connect=self.connect_timeout),
        }


@cache
def warm() -> "Future[Any]":
    """Begin to import LiteLLM, in a thread that never holds up the end of the process."""
    loading: Future[Any] = Future()
    # Running, so that a run which is cancelled while it waits does not cancel it for all.
    loading.set_running_or_notify_cancel()
    threading.Thread(target=_load, args=(loading,), name="litellm", daemon=True).start()
    return loading


def _load(loading: "Future[Any]") -> None:
    try:
        loading.set_result(_import())
    except BaseException as error:
        loading.set_exception(error)


def _import() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches prices, blocking
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else it loads any .env it finds
    litellm: Any = import_module("litellm")
    litellm.disable_hf_tokenizer_download = True
    litellm.disable_aiohttp_transport = True
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    litellm.modify_params = True  # some providers want tools named that history has used
    litellm.callbacks = []
    for name in IMPORTED_LATE:
        import_module(name)
    return litellm


def _chunks(answer: Any) -> AsyncGenerator[Chunk, None]:
    inner = answer.completion_stream
    is_wire = isinstance(inner, import_module("openai").AsyncStream)
    if is_wire and "text-completion" not in str(answer.custom_llm_provider):
        return _wire(inner.response)
    return _wrapped(answer)


async def _wire(response: Any) -> AsyncGenerator[Chunk, None]:
    """The events of an OpenAI-wire response; whatever ends it before its finish is a cut."""
    begun = ended = False
    try:
        async with aclosing(_lines(response)) as lines:
            async for line in lines:
                data = line[5:].strip() if line.startswith(b"data:") else b""
                if data == b"[DONE]":
                    ended = True
                    await _drain(lines)
                elif data:
                    chunk = _decoded(data)
                    begun, ended = True, ended or _is_end(chunk)
                    yield chunk
    except import_module("httpx").HTTPError:
        if not ended:
            raise
    if begun and not ended:
        raise EOFError


async def _lines(response: Any) -> AsyncGenerator[bytes, None]:
    """Split at line feeds only: JSON may hold the other ends of lines that text can have."""
    rest = b""
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line
            if len(rest) > LONGEST_LINE:
                raise StreamGarbled("a line without an end")
    yield rest


async def _drain(lines: AsyncGenerator[bytes, None]) -> None:
    """Read what is left, so that the connection can be used again, but wait for nobody."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            async for _ in lines:
                pass


def _decoded(data: bytes) -> Chunk:
    try:
        event = json.loads(data.decode(errors="replace"))
        failed, usage = event.get("error"), event.get("usage")
        choices = [_choice(choice) for choice in event.get("choices") or ()]
    except (AttributeError, TypeError, ValueError) as error:
        raise StreamGarbled("an event that is not a chunk") from error
    if failed:
        raise StreamFailed(failed)
    return {"choices": choices, **({"usage": usage} if isinstance(usage, dict) else {})}


def _choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    delta = dict(choice.get("delta") or {})
    if "reasoning" in delta:
        delta.setdefault("reasoning_content", delta.pop("reasoning"))
    return {
        "index": choice.get("index") or 0,
        "delta": delta,
        "finish_reason": choice.get("finish_reason"),
    }


def _is_end(chunk: Chunk) -> bool:
    return any(choice["finish_reason"] for choice in chunk["choices"])


async def _wrapped(answer: Any) -> AsyncGenerator[Chunk, None]:
    """What LiteLLM made of another wire, taken apart by hand: dumping it costs far more."""
    async for chunk in answer:
        choices = [
            {
                "index": choice.index,
                "delta": _delta(choice.delta),
                "finish_reason": choice.finish_reason,
            }
            for choice in chunk.choices
        ]
        usage = getattr(chunk, "usage", None)
        used = {"usage": usage.model_dump(exclude_none=True)} if usage else {}
        yield {"choices": choices, **used}
        # Chunks that have come already are read without a wait, and they are slow to read:
        # others must have their turn in between.
        await asyncio.sleep(0)


def _delta(delta: Any) -> dict[str, Any]:
    said = {name: getattr(delta, name, None) for name in DELTA}
    called = [_call(call) for call in getattr(delta, "tool_calls", None) or ()]
    found = {name: value for name, value in said.items() if value}
    return {**found, "tool_calls": called} if called else found


def _call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"index": call.index, "id": call.id, "type": "function", "function": function}


def _priced(chunk: Chunk, model: str, litellm: Any) -> Chunk:
    """The chunk with its cost in dollars, where the price is known and not told already."""
    usage = chunk.get("usage")
    if not usage or usage.get("cost") is not None:
        return chunk
    try:
        cost = sum(litellm.cost_per_token(model=model, usage_object=litellm.Usage(**usage)))
    except Exception as error:
        # It raises whatever it meets for a name it does not know; a price is not an answer.
        logger.debug("No price is known for %r: %s", model, type(error).__name__)
        return chunk
    # LiteLLM says 0 for some names that it does not know either.
    return {**chunk, "usage": {**usage, "cost": cost}} if cost else chunk
