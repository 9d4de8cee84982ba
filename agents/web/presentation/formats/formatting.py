"""Formats values as text, on one line or several."""

import json
import re
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from agents.engine.text import shorten_line, shorten_middle
from agents.runs.projection import decode_json

DASH = "—"
MAX_SHOWN_CHARS = 20_000
MAX_ROW_CHARS = 4_000  # per text of a step, in a chat
MAX_QUESTION_CHARS = 4_000
MAX_INTENT_CHARS = 140
LINE_CHARS = 72
BIDI_CONTROLS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Created once, because values contain many small ones.
_on_a_line = json.JSONEncoder(ensure_ascii=False).encode


def format_value(value: Any, max_chars: int = MAX_SHOWN_CHARS) -> str:
    """Format a value as text, with its middle omitted if it is very long."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else format_json(value)
    if len(text) <= max_chars:
        return text
    left_out = _("%(count)d characters omitted") % {"count": len(text) - max_chars // 2 * 2}
    return shorten_middle(text, max_chars, f"\n\n[… {left_out} …]\n\n")


def format_json(value: Any, indent: int = 0) -> str:
    """Format JSON on as few lines as fit, so that a table row stays on one line."""
    if not value or not isinstance(value, dict | list):
        return _on_a_line(value)
    inner = indent + 2
    items = value.values() if isinstance(value, dict) else value
    lines = [format_json(item, inner) for item in items]
    # What has longer items doesn't fit: so a long text is written once, not at each level.
    if sum(map(len, lines)) + indent <= LINE_CHARS:
        flat = _on_a_line(value)
        if len(flat) + indent <= LINE_CHARS:
            return flat
    if isinstance(value, dict):
        opening, closing = "{}"
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(value, lines, strict=True)]
    else:
        opening, closing = "[]"
    body = ",\n".join(f"{' ' * inner}{line}" for line in lines)
    return f"{opening}\n{body}\n{' ' * indent}{closing}"


def unwrap_single(value: Any) -> Any:
    """Return the only argument of a call that has one."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def parse_json_text(text: str) -> Any:
    """Parse JSON, so that it is displayed formatted; other text stays as it is."""
    if not text.startswith(("{", "[")) or len(text) > MAX_SHOWN_CHARS:
        return text
    return decode_json(text)


def format_compact(value: Any) -> str:
    value = unwrap_single(value)
    return value if isinstance(value, str) else _on_a_line(value)


def one_line(text: str) -> str:
    """Return one line without direction marks, which could reverse its order."""
    visible = BIDI_CONTROLS.sub("", text[: MAX_INTENT_CHARS * 4])
    return shorten_line(visible, MAX_INTENT_CHARS)


def duration(ms: float | None) -> str:
    """Format a duration: 0.42 s, 12.3 s, 1 min 05 s, 2 h 07 min."""
    if ms is None:
        return DASH
    if ms < 59_950:
        digits = 2 if ms < 9_995 else 1
        return _("%(seconds)s s") % {"seconds": f"{ms / 1000:.{digits}f}"}
    minutes, full_seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        params = {"minutes": minutes, "seconds": full_seconds}
        return _("%(minutes)d min %(seconds)02d s") % params
    hours, minutes = divmod(minutes, 60)
    return _("%(hours)d h %(minutes)02d min") % {"hours": hours, "minutes": minutes}


def seconds(value: float) -> str:
    """Format what is usually short, in the reader's language: 420 ms, 1.2 s."""
    if value < 1:
        return milliseconds(value * 1000)
    return _("%(seconds)s s") % {"seconds": number_format(value, 1)}


def milliseconds(value: float) -> str:
    is_whole = value >= 100 or float(round(value, 1)).is_integer()
    return f"{number_format(value, 0 if is_whole else 1)} ms"


def percent(share: float) -> str:
    """Format a percentage; only an exact 0 or 1 is displayed as 0% or 100%."""
    value = min(max(share * 100, 0.1), 99.9) if 0 < share < 1 else share * 100
    # Rounded first: Django cuts off what is too much.
    return f"{number_format(round(value, 1), 0 if value in (0, 100) else 1)}%"


def integer(ms: float) -> str:
    """Format for programs, without localization."""
    return f"{ms:.0f}"


def cost(dollars: float | None) -> str:
    """Format a cost: $0.0012 below a dollar, $1.50 above; a free run is $0."""
    if dollars is None:
        return DASH
    if dollars == 0:
        return "$0"
    if dollars < 0.0001:
        return "<$0.0001"
    return f"${dollars:,.{4 if dollars < 1 else 2}f}"


def count(number: int | None) -> str:
    """Format a count: 1,234, or a dash for zero."""
    return f"{number:,}" if number else DASH


def token_size(number: int) -> str:
    """Format a number of tokens in round figures: 8K, 200K, 1M."""
    if number >= 1_000_000:
        return f"{number / 1_000_000:.1f}".removesuffix(".0") + "M"
    return f"{number / 1000:.0f}K" if number >= 1000 else str(number)


def is_scrollable(text: str, max_chars: int) -> bool:
    """Whether the text may overflow its box, which must then be focusable by keyboard."""
    return len(text) > max_chars or text.count("\n") > max_chars // 20
