"""Calls a server with the API of OpenAI, Anthropic, Gemini or Ollama directly."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from copy import copy
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import aiohttp

from agents.engine.turn import KEEP_ALIVE, Chunk, TextChunk, has_content
from agents.llm import parameters as model_parameters
from agents.llm.wire.sse import DONE, EventReader, decode_events

from .. import model_info, prompt_caching
from ..routing import Route, account_id, resolve_endpoint
from ..usage_limits import UsageLimits
from ..wire import http
from ..wire.json_codec import encode
from ..wire.provider_errors import StreamFailed, StreamGarbled, explain
from . import anthropic, gemini, ollama, openai_request
from .conversion import convert_events

DRAIN_SECONDS = 0.1
REST_SECONDS = 2.0
TICKS_PER_DOLLAR = 10_000_000_000  # of a dollar, xAI's unit of cost


class DirectModel:
    """A client of one server.

    A key is only sent to its own address: `base_url`, or the provider's. Everything received
    within `batch_seconds` is read at once.
    """

    route: Route = "direct"

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        connect_timeout: float = 10.0,
        timeout: float = 600.0,
        batch_seconds: float = 0,
        caches_prompts: bool = True,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.base_url = base_url
        self.account = account_id(base_url, api_key)
        self.parameters = dict(parameters or {})
        # With a pace the reader has its own deadlines, so no timer per piece is needed.
        patience = None if batch_seconds else timeout
        self.timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_timeout, sock_read=patience
        )
        self.batch_seconds = batch_seconds
        self.caches_prompts = caches_prompts
        self.is_streaming = True
        self._environ = environ
        self._api_key = api_key

    def for_short_reply(self) -> Self:
        """Return a client that asks for the reply in one piece, which costs less to read."""
        client = copy(self)
        client.is_streaming = False
        return client

    async def stream(
        self,
        *,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncGenerator[Chunk, None]:
        settings = model_parameters.ModelSettings(
            model=model,
            base_url=self.base_url,
            api_key=self._api_key,
            options=self.parameters,
        )
        model_parameters.check(settings, parameters)
        endpoint = resolve_endpoint(
            model, self._environ, base_url=self.base_url, api_key=self._api_key
        )
        sent_parameters = {**self.parameters, **parameters}
        limits = UsageLimits(model, messages, tools, sent_parameters)
        is_streaming = self.is_streaming
        match endpoint.own_api:
            case "anthropic":
                if self.caches_prompts:
                    messages, tools = prompt_caching.mark(model, messages, tools)
                body = anthropic.build_body(model, messages, tools, sent_parameters)
                url = f"{endpoint.url}{anthropic.MESSAGES_PATH}"
                key_headers = anthropic.headers(endpoint.key)
                is_streaming |= body["max_tokens"] > anthropic.MAX_UNSTREAMED_TOKENS
                wire = ANTHROPIC_WIRE
            case "gemini":
                body = gemini.build_body(model, messages, tools, sent_parameters)
                url = gemini.url(endpoint.url, endpoint.name, is_streaming=is_streaming)
                key_headers = gemini.headers(endpoint.key)
                wire = GEMINI_WIRE
            case "ollama":
                body = ollama.build_body(endpoint.name, messages, tools, sent_parameters)
                url = f"{endpoint.url}{ollama.CHAT_PATH}"
                key_headers = openai_request.headers(endpoint.key)
                wire = OLLAMA_WIRE
            case None:
                quirks = endpoint.provider.quirks_for(endpoint.name)
                body = openai_request.build_body(
                    endpoint.name, quirks, messages, tools, sent_parameters
                )
                if self.caches_prompts and endpoint.is_openai:
                    body |= prompt_caching.cache_key(model, messages, tools)
                url = f"{endpoint.url}/chat/completions"
                key_headers = openai_request.headers(endpoint.key)
                wire = OPENAI_WIRE
        if not is_streaming:
            body = openai_request.unstreamed(body)
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            **key_headers,
        }
        try:
            async with (
                http.post(url, encode(body), headers, self.timeout) as response,
                aclosing(_read_chunks(response, self.batch_seconds, wire)) as chunks,
            ):
                async for chunk in chunks:
                    yield _add_cost(chunk, limits) if "usage" in chunk else chunk
        except Exception as error:
            # Not `from error`: a provider's message may contain the key, and logs print causes.
            raise explain(error, model=model, secrets=[endpoint.key]) from None


async def _read_chunks(
    response: http.StreamingResponse, batch_seconds: float, wire: "Wire"
) -> AsyncGenerator[Chunk, None]:
    """Yield the server's chunks; an end without a finish reason is an error."""
    reader = wire.reader()
    decode = wire.decoder()
    has_started = has_content_begun = ended = False
    try:
        while not reader.has_ended:
            events = reader.feed(await _read(response, has_ended=ended))
            if not events and not has_content_begun and not reader.has_ended:
                yield KEEP_ALIVE  # a comment while it reads the prompt, or a part of an event
            for event in _parse_events(decode(events)):
                if event == DONE:
                    await _drain(response)
                    return
                chunk: Chunk = event
                if not isinstance(event, TextChunk):
                    chunk = _to_chunk(event, has_started)
                    ended = ended or any(c["finish_reason"] for c in chunk["choices"])
                has_started = True
                has_content_begun = has_content_begun or has_content(chunk)
                yield chunk
            # Many servers announce a stream before its first token, which is awaited.
            await response.rest(batch_seconds if has_content_begun and not ended else 0)
    except (aiohttp.ClientError, OSError):
        if not ended:
            raise
    if has_started and not ended:
        raise EOFError


async def _read(response: http.StreamingResponse, *, has_ended: bool) -> bytes:
    """Return what has arrived; after the finish reason, little is waited for."""
    if not has_ended:
        return await response.read()
    try:
        async with asyncio.timeout(REST_SECONDS):
            return await response.read()
    except TimeoutError:
        return b""


async def _drain(response: http.StreamingResponse) -> None:
    """Read the rest, so that the connection can be reused, but only briefly."""
    if response.is_over:
        return
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while await response.read():
                pass


def _parse_events(events: Iterable[Any]) -> Iterator[Any]:
    """Yield events; consecutive text is merged, which is cheaper to read."""
    texts: list[str] = []
    try:
        for event in events:
            if (text := _text_only(event)) is not None:
                texts.append(text)
                continue
            yield from _flush_text(texts)
            yield event
    except StreamGarbled:
        yield from _flush_text(texts)
        raise
    yield from _flush_text(texts)


def _text_only(event: Any) -> str | None:
    """Return the text of an event that contains nothing else."""
    try:
        [choice] = event["choices"]
        delta = choice["delta"]
        text = delta["content"]
        has_more = len(delta) > 1 or choice.get("finish_reason") or choice.get("index")
        has_more = has_more or event.get("usage") or event.get("error")
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return text if isinstance(text, str) and not has_more else None


def _flush_text(texts: list[str]) -> Iterator[TextChunk]:
    if texts:
        yield TextChunk("".join(texts))
    texts.clear()


def _to_chunk(event: Any, has_started: bool) -> dict[str, Any]:
    """Return an event's chunk.

    A message instead of a delta is the whole answer, unless it was already sent.
    """
    choices = []
    try:
        failure = event.get("error") or (event if event.get("object") == "error" else None)
        usage = event.get("usage")
        for choice in event.get("choices") or ():
            delta = choice.get("delta")
            if delta is None and not has_started:
                delta = choice.get("message")
            choices.append(
                {
                    "index": choice.get("index") or 0,
                    "delta": dict(delta or {}),
                    "finish_reason": choice.get("finish_reason"),
                }
            )
    except (AttributeError, TypeError, ValueError) as error:
        raise StreamGarbled("an event that is not a chunk") from error
    if failure:
        raise StreamFailed(failure)
    chunk = {"id": event.get("id"), "model": event.get("model"), "choices": choices}
    if usage and isinstance(usage, dict):
        chunk["usage"] = usage
    return chunk


def _add_cost(chunk: Chunk, limits: UsageLimits) -> Chunk:
    """Add the cost in dollars, if the price is known and not already included."""
    usage = chunk["usage"]
    details = usage.get("completion_tokens_details")
    reasoning = _count(details.get("reasoning_tokens")) if isinstance(details, Mapping) else 0
    prompt = _count(usage.get("prompt_tokens"))
    completion = _count(usage.get("completion_tokens"))
    if reasoning and usage.get("total_tokens") == prompt + completion + reasoning:
        # Reasoning tokens were counted separately; elsewhere they are completion tokens.
        usage = {**usage, "completion_tokens": completion + reasoning}
    usage = limits.clamp(usage)
    cost = usage.pop("cost", None)
    if isinstance(cost, int | float):
        usage["cost"] = cost
    elif isinstance(ticks := usage.get("cost_in_usd_ticks"), int):
        usage["cost"] = ticks / TICKS_PER_DOLLAR
    elif isinstance(usage.get("prompt_tokens"), int) and (
        price := model_info.price(limits.model, usage["prompt_tokens"])
    ):
        usage["cost"] = price.of(usage)
    priced = limits.clamp_cost(usage)
    return {**chunk, "usage": prompt_caching.listed_savings(limits.model, priced)}


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


class Reader(Protocol):
    has_ended: bool

    def feed(self, piece: bytes) -> list[bytes]: ...


class Wire(NamedTuple):
    """How a response is split into events and how they are decoded."""

    reader: Callable[[], Reader]
    decoder: Callable[[], Callable[[list[bytes]], Iterable[Any]]]


ANTHROPIC_WIRE = Wire(
    EventReader, lambda: partial(convert_events, anthropic.EventConverter().convert)
)
GEMINI_WIRE = Wire(
    EventReader, lambda: partial(convert_events, gemini.EventConverter().convert)
)
OLLAMA_WIRE = Wire(ollama.LineReader, lambda: ollama.decode_lines)
OPENAI_WIRE = Wire(EventReader, lambda: decode_events)
