"""JSON encoding and decoding for model servers."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from .provider_errors import StreamGarbled


def encode(value: Mapping[str, Any]) -> bytes:
    with suppress(TypeError):  # rejects lone surrogates and huge numbers
        return orjson.dumps(value)
    return json.dumps(value).encode()


def decode(data: bytes) -> Any:
    """Decode JSON; invalid bytes are replaced."""
    try:
        return orjson.loads(data)
    except (ValueError, RecursionError):
        # It rejects lone surrogates, NaN and broken bytes.
        try:
            return json.loads(data.decode(errors="replace"))
        except (ValueError, RecursionError) as error:
            raise StreamGarbled("no JSON") from error


def decode_all(batch: list[bytes]) -> list[Any] | None:
    """Decode several values as one list; None if they aren't one value each."""
    try:
        values = decode(b"[%s]" % b",".join(batch))
    except StreamGarbled:
        return None
    return values if len(values) == len(batch) else None


def is_json(data: bytes) -> bool:
    try:
        decode(data)
    except StreamGarbled:
        return False
    return True
