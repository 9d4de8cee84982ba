"""What other APIs than OpenAI's need: its calls as data, and their events as its own."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..wire.provider_errors import StreamGarbled
from ..wire.sse import DONE, decode_events


def call_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments, which are JSON text in OpenAI's API."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def to_event(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def convert_events(
    convert: Callable[[Any], Iterator[Any]], batch: list[bytes]
) -> Iterator[Any]:
    """Yield another API's events as those of OpenAI's."""
    for event in decode_events(batch):
        if event == DONE:  # some proxies end every stream with it
            yield DONE
            continue
        try:
            yield from convert(event)
        except (AttributeError, IndexError, KeyError, RecursionError, TypeError) as error:
            raise StreamGarbled("an event that is not a chunk") from error
