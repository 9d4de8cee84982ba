"""Events as every database takes them."""

import json
import re
from dataclasses import replace
from typing import Any

from agents.engine.events import Event, Type

WORDS = {Type.DELTA, Type.THOUGHT_DELTA}
PLAIN = re.compile("[\x01-\x7f]*")
NUL = "\\u0000"


def storable(event: Event) -> Event:
    """Without NUL and halves of characters: PostgreSQL takes neither."""
    if event.type in WORDS and PLAIN.fullmatch(event.data["content"]):
        return event
    text = json.dumps(event.data, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        event = replace(event, data=json.loads(text.encode(errors="replace")))
    return replace(event, data=_without_nul(event.data)) if NUL in text else event


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "�")
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    return [_without_nul(item) for item in value] if isinstance(value, list) else value
