"""JSON that can be saved and displayed."""

import json
from typing import Any

MAX_JSON_DEPTH = 100
NUL_ESCAPE = "\\u0000"


def decode_json(text: str) -> Any:
    """Return JSON as data if it can be saved and displayed.

    NaN and deep nesting can't, and NUL and lone surrogates not everywhere.
    """
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return text
    if NUL_ESCAPE in text:
        return text
    return text if _exceeds_depth(value, MAX_JSON_DEPTH) else value


def _exceeds_depth(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_exceeds_depth(item, levels - 1) for item in items)
