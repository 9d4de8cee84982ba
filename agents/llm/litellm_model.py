"""Any provider that LiteLLM knows, as one stream of OpenAI-wire chunks.

LiteLLM costs seconds to import and, read as it comes, most of a millisecond a chunk. So it is
imported once in a thread, and where what it holds is an OpenAI-wire response, the bytes of
that response are read here.
"""

import asyncio
import json
import logging
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from email.utils import parsedate_to_datetime
from functools import cache
from importlib import import_module
from typing import Any

from agents.engine.errors import AgentConnectionError, AgentError, ModelError, ModelTimeout
from agents.engine.turn import Chunk

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


class RateLimited(ModelError):
    """The model's provider asks to wait; `retry_after` is in seconds, where it said so."""

    retry_after: float | None = None


class StreamGarbled(Exception):
    """The provider sent what is not a stream of chunks."""


class StreamFailed(Exception):
    """The provider sent an error in the middle of its answer."""

    def __init__(self, error: Any) -> None:
        details = error if isinstance(error, Mapping) else {"message": str(error)}
        super().__init__(str(details.get("message") or details))
        code = str(details.get("code") or details.get("status") or "")
        self.status_code = int(code) if code.isdigit() else 500


AGAIN = "Try again, or choose another model."
LATER = "Try again in a while, or choose another model."
KEY = "Check the API key of this model."

MISSING_KEY = re.compile(r"missing (credentials|\w+ api.?key)|api_key .*must be set", re.I)
NO_PROVIDER = re.compile(r"LLM Provider NOT provided")
TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|too many tokens"
    r"|input token count.*exceeds|reduce the length",
    re.I,
)
# In this order: a connection that is late may have an SSLError among its causes, too.
UNREACHABLE = {
    "gaierror": "no host of this name is known",
    "ConnectTimeout": "nobody answered in time",
    "SSLError": "the secure connection failed",
    "ConnectError": "the connection was refused",
}
CUT = {"ReadError", "WriteError", "RemoteProtocolError", "EOFError"}
GARBLED = {"StreamGarbled", "JSONDecodeError", "UnicodeDecodeError"}
LATE = {"TimeoutException", "Timeout", "APITimeoutError"}
SECRETS = re.compile(
    r"\bbearer\s+[^\s'\",]+"
    r"|\b(?:sk|pk|rk|gsk|xai|or)[-_][\w*.-]{4,}"
    r"|\bAIza[\w*-]{8,}"
    r"|(?<=key=)[^\s&'\",]+|(?<=token=)[^\s&'\",]+",
    re.I,
)
PREFIX = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*[:-]\s*)+")


def explain(error: BaseException, *, model: str, secret: str | None = None) -> AgentError:
    """The same failure in words for a person, without key or stack."""
    chain = list(_causes(error))
    names = {kind.__name__ for link in chain for kind in type(link).__mro__}
    status = next((s for link in chain if (s := getattr(link, "status_code", None))), None)
    if names & {"ConnectError", "ConnectTimeout"}:
        reason = next(words for name, words in UNREACHABLE.items() if name in names)
        where = f"{model!r}{_address(chain)}"
        return AgentConnectionError(f"Could not reach the model {where}: {reason}.")
    if names & CUT:
        return AgentConnectionError(f"The answer of {model!r} was cut off.", advice=AGAIN)
    if names & LATE or status in (408, 504):
        return ModelTimeout(f"{model!r} did not answer in time.")
    if names & GARBLED:
        return ModelError(f"{model!r} sent something that cannot be read.", advice=AGAIN)
    too_long = "ContextWindowExceededError" in names
    return _refused(status, model, _said(error, secret), too_long, chain)


def _refused(
    status: int | None, model: str, said: str, too_long: bool, chain: list[BaseException]
) -> ModelError:
    told = f": {said}" if said else "."
    if status in (401, 403) or MISSING_KEY.search(said):
        return ModelError(f"The provider of {model!r} did not accept the key{told}", advice=KEY)
    if status == 429:
        return _rate_limited(model, told, _retry_after(chain))
    if too_long or TOO_LONG.search(said):
        return ModelError(
            f"The conversation is too long for {model!r}{told}",
            advice="Start a new chat, or choose a model with a larger context.",
        )
    if NO_PROVIDER.search(said):
        return ModelError(
            f"The name {model!r} does not say whose model it is.",
            advice="Write it as provider/model, for example 'openai/…' or 'anthropic/…'.",
        )
    if status == 404:
        return ModelError(
            f"The provider of {model!r} does not have it{told}",
            advice="Check the name of the model and its address.",
        )
    if status and status >= 500:
        return ModelError(
            f"The provider of {model!r} has a problem (HTTP {status}){told}", advice=LATER
        )
    return ModelError(f"The provider of {model!r} refused the request{told}", advice=AGAIN)


def _rate_limited(model: str, told: str, seconds: float | None) -> RateLimited:
    wait = LATER if seconds is None else f"Try again in {seconds:g} seconds."
    limited = RateLimited(f"{model!r} is rate limited by its provider{told}", advice=wait)
    limited.retry_after = seconds
    return limited


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what LiteLLM wrapped in it, and what it came from, once each."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        inner = getattr(error, "original_exception", None)
        if isinstance(inner, BaseException) and inner not in seen:
            yield inner
        error = error.__cause__ or error.__context__


def _said(error: BaseException, secret: str | None) -> str:
    """The first line of what the provider said, made safe to show."""
    text = PREFIX.sub("", str(getattr(error, "original_exception", None) or error))
    text = _message_in(text) or text.strip().partition("\n")[0]
    if secret and len(secret) >= 4:
        text = text.replace(secret, "***")
    text = SECRETS.sub("***", text)
    return text if len(text) <= 300 else text[:299] + "…"


def _message_in(text: str) -> str:
    """Some providers' text is JSON, of which a person wants the message."""
    begin = text.find("{")
    try:
        body = json.JSONDecoder().raw_decode(text[begin:])[0] if begin >= 0 else {}
    except ValueError:
        return ""
    error = body.get("error") if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _address(chain: list[BaseException]) -> str:
    # `_request`, because `request` raises where it was not set.
    for link in chain:
        url = getattr(getattr(link, "_request", None), "url", None)
        if url is not None:
            return f" at {url.host}:{url.port or (443 if url.scheme == 'https' else 80)}"
    return ""


def _retry_after(chain: list[BaseException]) -> float | None:
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None) or {}
        if value := headers.get("retry-after"):
            return _seconds(value)
    return None


def _seconds(value: str) -> float | None:
    """Retry-After is a number of seconds or a date."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
