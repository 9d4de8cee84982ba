"""Reads OpenAI-format responses directly, which is faster than LiteLLM."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from importlib import import_module
from typing import Any

from agents.engine.turn import Chunk

from ..wire.provider_errors import StreamFailed, StreamGarbled

MAX_LINE_BYTES = 32 * 1024 * 1024


async def read_wire(response: Any) -> AsyncGenerator[Chunk, None]:
    """Yield events of an OpenAI-format response; an end without a finish reason is an error."""
    has_started = ended = False
    try:
        async with aclosing(_read_lines(response)) as lines:
            async for line in lines:
                # Some servers send one JSON object, also for errors.
                data = line if line.startswith(b"{") else b""
                if line.startswith(b"data:"):
                    data = line[5:].strip()
                elif line.startswith(b"error: {"):  # llama.cpp
                    data = b'{"error":%b}' % line[6:].strip()
                if data == b"[DONE]":
                    ended = True
                    await _drain(lines)
                elif data:
                    chunk = _parse_chunk(data)
                    has_started = True
                    ended = ended or any(c["finish_reason"] for c in chunk["choices"])
                    yield chunk
    except import_module("httpx").HTTPError:
        if not ended:
            raise
    if has_started and not ended:
        raise EOFError


async def _read_lines(response: Any) -> AsyncGenerator[bytes, None]:
    """Split at line feeds only, because JSON may contain other line separators."""
    open_line = b""
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            *lines, open_line = (open_line + piece).split(b"\n")
            for line in lines:
                yield line
            if len(open_line) > MAX_LINE_BYTES:
                raise StreamGarbled("a line without an end")
    yield open_line


async def _drain(lines: AsyncGenerator[bytes, None]) -> None:
    """Read the rest, so that the connection can be reused, but only briefly."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            async for _ in lines:
                pass


def _parse_chunk(data: bytes) -> Chunk:
    choices = []
    try:
        event = json.loads(data.decode(errors="replace"))
        failure = event.get("error") or (event if event.get("object") == "error" else None)
        usage = event.get("usage")
        for choice in event.get("choices") or ():
            is_whole = choice.get("delta") is None and choice.get("message")
            field = "message" if is_whole else "delta"
            choices.append(
                {
                    "index": choice.get("index") or 0,
                    field: dict(choice.get(field) or {}),
                    "finish_reason": choice.get("finish_reason"),
                }
            )
    except (AttributeError, TypeError, ValueError) as error:
        raise StreamGarbled("an event that is not a chunk") from error
    if failure:
        raise StreamFailed(failure)
    chunk = {"id": event.get("id"), "model": event.get("model"), "choices": choices}
    if isinstance(usage, dict):
        chunk["usage"] = usage
    return chunk
