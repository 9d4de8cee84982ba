"""Text that is JSON, or may be."""

import json
from typing import Any

import orjson


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def json_text(value: Any) -> str:
    """Return the data as a request has it: in the fewest characters."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # rejects lone surrogates and huge numbers
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
