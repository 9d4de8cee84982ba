"""JSON on its way to and from a server, fast where orjson is installed."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agents.llm.failures import StreamGarbled

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]


def encode(value: Mapping[str, Any]) -> bytes:
    if orjson is not None:
        with suppress(TypeError):  # it takes no half characters and no huge numbers
            return orjson.dumps(value)
    return json.dumps(value).encode()


def decode(data: bytes) -> Any:
    """What the bytes say; those that are no text become marks that they were there."""
    try:
        return json.loads(data) if orjson is None else orjson.loads(data)
    except (ValueError, RecursionError):
        return _decode_patiently(data)


def _decode_patiently(data: bytes) -> Any:
    """What others write and a strict reader refuses: half characters, NaN, broken bytes."""
    try:
        return json.loads(data.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise StreamGarbled("no JSON") from error


def is_json(data: bytes) -> bool:
    try:
        decode(data)
    except StreamGarbled:
        return False
    return True
