"""Values as text to read: on a line, or over as many as they need."""

import json
import re
from typing import Any

from django.utils.translation import gettext as _

from agents.runs.projection import decoded

MOST_SHOWN = 20_000
MOST_IN_ROW = 4_000  # of each text of a step, in a chat
MOST_QUESTION = 4_000
MOST_INTENT = 140
LINE = 72
TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Made once: a value has many small ones in it.
_on_a_line = json.JSONEncoder(ensure_ascii=False).encode


def shown(value: Any, most: int = MOST_SHOWN) -> str:
    """A value as text to read, its middle left out where it is very long."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else unfolded(value)
    if len(text) <= most:
        return text
    half = most // 2
    left_out = _("%(count)d characters left out") % {"count": len(text) - 2 * half}
    return f"{text[:half]}\n\n[… {left_out} …]\n\n{text[-half:]}"


def unfolded(value: Any, indent: int = 0) -> str:
    """JSON over as many lines as it needs and no more: a row of a table stays a row."""
    flat = _on_a_line(value)
    if not value or not isinstance(value, dict | list) or len(flat) + indent <= LINE:
        return flat
    inner = indent + 2
    if isinstance(value, dict):
        opening, closing = "{}"
        lines = [f"{json.dumps(key)}: {unfolded(item, inner)}" for key, item in value.items()]
    else:
        opening, closing = "[]"
        lines = [unfolded(item, inner) for item in value]
    body = ",\n".join(f"{' ' * inner}{line}" for line in lines)
    return f"{opening}\n{body}\n{' ' * indent}{closing}"


def only_one(value: Any) -> Any:
    """The one argument of a call that has but one."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def unpacked(text: str) -> Any:
    """JSON as data, so that it is shown unfolded; other text as it is."""
    if not text.startswith(("{", "[")) or len(text) > MOST_SHOWN:
        return text
    return decoded(text)


def brief(value: Any) -> str:
    value = only_one(value)
    return value if isinstance(value, str) else _on_a_line(value)


def one_line(text: str) -> str:
    """One line of it, in the order in which it is written: marks could turn that round."""
    line = " ".join(TURNING.sub("", text[: MOST_INTENT * 4]).split())
    return line if len(line) <= MOST_INTENT else f"{line[: MOST_INTENT - 1]}…"
