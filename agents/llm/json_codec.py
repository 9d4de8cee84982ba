"""JSON on its way to and from a server."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from .provider_errors import StreamGarbled


def encode(value: Mapping[str, Any]) -> bytes:
    with suppress(TypeError):  # it takes no half characters and no huge numbers
        return orjson.dumps(value)
    return json.dumps(value).encode()


def decode(data: bytes) -> Any:
    """What the bytes say; those that are no text become marks that they were there."""
    try:
        return orjson.loads(data)
    except (ValueError, RecursionError):
        return _decode_lenient(data)


def decode_all(several: list[bytes]) -> list[Any] | None:
    """What each of them says, read as one list; nothing where they are not one value each."""
    try:
        values = decode(b"[%s]" % b",".join(several))
    except StreamGarbled:
        return None
    return values if len(values) == len(several) else None


def _decode_lenient(data: bytes) -> Any:
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
