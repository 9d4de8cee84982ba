"""Text that is JSON, or may be."""

import ast
import json
import re
from typing import Any

import orjson

MAX_REPAIRED_CHARS = 20_000
_FENCE = re.compile(r"\A```(?:json)?\s*(\{.*\})\s*```\Z", re.DOTALL)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def repaired_object(text: str) -> str:
    """Return a JSON object for one that a weak model wrote almost right, or the text.

    Only its form is repaired: a fence around it, line breaks in strings, Python's notation,
    trailing commas, and missing brackets at the end.
    """
    body = _FENCE.sub(r"\1", text.strip())
    if not body.startswith("{") or len(body) > MAX_REPAIRED_CHARS:
        return text
    for candidate in (body, _close_brackets(body)):
        try:
            value = json.loads(candidate, strict=False)
        except ValueError:
            try:
                value = ast.literal_eval(candidate)
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                continue
        except RecursionError:
            return text
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):  # a set, bytes, …
            return text
    return text


def _close_brackets(text: str) -> str:
    """Add the closing brackets that are missing after a complete value."""
    closing = list[str]()
    string_mark = ""
    is_escaped = False
    for char in text:
        if is_escaped:
            is_escaped = False
        elif string_mark:
            is_escaped = char == "\\"
            string_mark = "" if char == string_mark else string_mark
        elif char in "\"'":
            string_mark = char
        elif char in "{[":
            closing.append("}" if char == "{" else "]")
        elif char in "}]" and closing:
            closing.pop()
    # After a digit or a letter more of the value may be missing.
    is_complete = not string_mark and text.endswith(('"', "'", "}", "]"))
    return text + "".join(reversed(closing)) if is_complete else text


def json_text(value: Any) -> str:
    """Return the data as a request has it: in the fewest characters."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # rejects lone surrogates and huge numbers
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
