"""Calls a server with OpenAI's API, or Ollama's, directly."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from copy import copy
from typing import Any, NamedTuple, Protocol, Self

import aiohttp

from agents.engine.turn import KEEP_ALIVE, Chunk, TextChunk, has_content
from agents.llm import parameters as model_parameters
from agents.llm.sse import EventReader

from . import http, model_info, ollama, openai_request, prompt_caching
from .json_codec import decode, decode_all, encode
from .provider_errors import StreamFailed, StreamGarbled, explain
from .routing import Endpoint, Route, account_id, resolve_endpoint
from .usage_limits import UsageLimits

DONE = b"[DONE]"
DRAIN_SECONDS = 0.1
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
        other = copy(self)
        other.is_streaming = False
        return other

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
        if endpoint.has_own_api:
            body = ollama.build_body(endpoint.name, messages, tools, sent_parameters)
            url = f"{endpoint.url}{ollama.CHAT_PATH}"
            wire = OLLAMA_WIRE
        else:
            quirks = endpoint.provider.quirks_for(endpoint.name)
            body = openai_request.build_body(
                endpoint.name, quirks, messages, tools, sent_parameters
            )
            if self.caches_prompts and endpoint.is_openai:
                body |= prompt_caching.cache_key(model, messages, tools)
            url = f"{endpoint.url}/chat/completions"
            wire = OPENAI_WIRE
        if not self.is_streaming:
            body = openai_request.unstreamed(body)
        try:
            async with (
                http.post(url, encode(body), _headers(endpoint), self.timeout) as response,
                aclosing(_read_chunks(response, self.batch_seconds, wire)) as chunks,
            ):
                async for chunk in chunks:
                    yield _add_cost(chunk, limits) if "usage" in chunk else chunk
        except Exception as error:
            # Not `from error`: a provider's message may contain the key, and logs print causes.
            raise explain(error, model=model, secrets=[endpoint.key]) from None


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
    }
    return headers | ({"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {})


async def _read_chunks(
    response: http.StreamingResponse, batch_seconds: float, wire: "Wire"
) -> AsyncGenerator[Chunk, None]:
    """Yield the server's chunks; an end without a finish reason is an error."""
    reader = wire.reader()
    has_started = has_content_begun = ended = False
    try:
        while not reader.has_ended:
            events = reader.feed(await response.read())
            if not events and not has_content_begun and not reader.has_ended:
                yield KEEP_ALIVE  # a comment while it reads the prompt, or a part of an event
            for event in _parse_events(wire.decode(events)):
                if event == DONE:
                    await _drain(response)
                    return
                chunk = event if isinstance(event, TextChunk) else _to_chunk(event, has_started)
                has_started = True
                ended = ended or _is_final(chunk)
                has_content_begun = has_content_begun or has_content(chunk)
                yield chunk
            # Many servers announce a stream before its first token, which is awaited.
            await response.rest(batch_seconds if has_content_begun and not ended else 0)
    except (aiohttp.ClientError, OSError):
        if not ended:
            raise
    if has_started and not ended:
        raise EOFError


async def _drain(response: http.StreamingResponse) -> None:
    """Read the rest, so that the connection can be reused, but only briefly."""
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


def _decode_batch(batch: list[bytes]) -> Iterable[Any]:
    """Decode all at once if all are JSON; otherwise one by one, up to the first that isn't."""
    all_of_it = decode_all(batch) if len(batch) > 1 else None
    return all_of_it or (data if data == DONE else decode(data) for data in batch)


def _text_only(event: Any) -> str | None:
    """Return the text of an event that contains nothing else."""
    try:
        [choice] = event["choices"]
        delta = choice["delta"]
        text = delta["content"]
        is_more = len(delta) > 1 or choice.get("finish_reason") or choice.get("index")
        is_more = is_more or event.get("usage") or event.get("error")
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return text if isinstance(text, str) and not is_more else None


def _flush_text(texts: list[str]) -> Iterator[TextChunk]:
    if texts:
        yield TextChunk("".join(texts))
    texts.clear()


def _to_chunk(event: Any, has_started: bool) -> dict[str, Any]:
    try:
        failed = event.get("error") or (event if event.get("object") == "error" else None)
        usage = event.get("usage")
        choices = [_to_choice(choice, has_started) for choice in event.get("choices") or ()]
    except (AttributeError, TypeError, ValueError) as error:
        raise StreamGarbled("an event that is not a chunk") from error
    if failed:
        raise StreamFailed(failed)
    used = {"usage": usage} if usage and isinstance(usage, dict) else {}
    return {"id": event.get("id"), "model": event.get("model"), "choices": choices, **used}


def _to_choice(choice: Mapping[str, Any], has_started: bool) -> dict[str, Any]:
    """Treat a message instead of a delta as the whole answer, unless it was already sent."""
    delta = choice.get("delta")
    if delta is None and not has_started:
        delta = choice.get("message")
    return {
        "index": choice.get("index") or 0,
        "delta": dict(delta or {}),
        "finish_reason": choice.get("finish_reason"),
    }


def _is_final(chunk: Chunk) -> bool:
    if isinstance(chunk, TextChunk):
        return False
    return any(choice["finish_reason"] for choice in chunk["choices"])


def _add_cost(chunk: Chunk, limits: UsageLimits) -> Chunk:
    """Add the cost in dollars, if the price is known and not already included."""
    usage = limits.clamp(_include_reasoning(chunk["usage"]))
    cost = usage.get("cost")
    if not isinstance(cost, int | float):
        cost = _cost(usage, limits.model)
    extra = {} if cost is None else {"cost": cost}
    others = {name: value for name, value in usage.items() if name != "cost"}
    priced = limits.clamp_cost(others | extra)
    return {**chunk, "usage": prompt_caching.listed_savings(limits.model, priced)}


def _cost(usage: Mapping[str, Any], model: str) -> float | None:
    if isinstance(ticks := usage.get("cost_in_usd_ticks"), int):
        return ticks / TICKS_PER_DOLLAR
    if not isinstance(size := usage.get("prompt_tokens"), int):
        return None
    price = model_info.price(model, size)
    return price.of(usage) if price else None


def _include_reasoning(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Include reasoning tokens in the completion tokens, if they were counted separately."""
    details = usage.get("completion_tokens_details")
    thought = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"), thought)
    prompt, completion, thought = (count if isinstance(count, int) else 0 for count in counts)
    if not thought or usage.get("total_tokens") != prompt + completion + thought:
        return usage
    return {**usage, "completion_tokens": completion + thought}


class Reader(Protocol):
    has_ended: bool

    def feed(self, piece: bytes) -> list[bytes]: ...


class Wire(NamedTuple):
    """How a response is split into events and how they are decoded."""

    reader: Callable[[], Reader]
    decode: Callable[[list[bytes]], Iterable[Any]]


OPENAI_WIRE = Wire(EventReader, _decode_batch)
OLLAMA_WIRE = Wire(ollama.LineReader, ollama.decode_lines)
