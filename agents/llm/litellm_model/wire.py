"""Reads OpenAI-format responses directly, which is faster than LiteLLM."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from importlib import import_module
from typing import Any

from agents.engine.turn import Chunk

from ..provider_errors import StreamFailed, StreamGarbled
from .chunks import is_final, to_choice

MAX_LINE_BYTES = 32 * 1024 * 1024


async def read_wire(response: Any) -> AsyncGenerator[Chunk, None]:
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
                    has_started, ended = True, ended or is_final(chunk)
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
        choices = [to_choice(choice) for choice in event.get("choices") or ()]
    except (AttributeError, TypeError, ValueError) as error:
        raise StreamGarbled("an event that is not a chunk") from error
    if failed:
        raise StreamFailed(failed)
    used = {"usage": usage} if isinstance(usage, dict) else {}
    return {"id": event.get("id"), "model": event.get("model"), "choices": choices, **used}
