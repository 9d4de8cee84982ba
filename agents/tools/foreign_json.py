"""JSON that somebody else wrote: what it contains can be saved and displayed."""

import json
from typing import Any


def loads(text: str) -> Any:
    """Return the value, with lone surrogates replaced; raise JSONDecodeError."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # Python limits the digits that it converts
        raise json.JSONDecodeError("Number with too many digits", text, 0) from error
    if "\\ud" not in text.lower():
        return value
    return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
