"""Text of models, tools and other users, made safe for a terminal. It needs no Django."""

import json
from typing import Any
from unicodedata import category

# Line breaks and tabs are layout; joiners are part of emoji and several scripts.
ALLOWED_CHARS = {"\n", "\t", "\u200c", "\u200d"}
CONTROL_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def escape_controls(text: str) -> str:
    """Write out each character that a terminal would interpret or hide."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_sequence(c) if _is_control(c) else c for c in text)


def escape_line(text: str) -> str:
    """Escape one line, including its line breaks."""
    return "".join(c if c.isprintable() else _escape_sequence(c) for c in text)


def json_line(value: Any) -> str:
    """Return a line of JSON that is safe in a terminal and valid for programs."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(json.dumps(c)[1:-1] if _is_control(c) else c for c in text)


def _is_control(char: str) -> bool:
    return category(char) in CONTROL_CATEGORIES and char not in ALLOWED_CHARS


def _escape_sequence(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
