"""Removes characters from model requests that a model reads and people can't see.

Tags, runs of variation selectors, zero-width characters, direction marks, controls and
private-use characters can carry whole instructions. Characters that a script or an emoji needs
stay: one joiner between joining letters, one selector after its base, a flag made of tags.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

TAGS = "\U000e0000-\U000e007f"
SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
INVISIBLE = (
    "\0-\b\v\f\x0e-\x1f\x7f-\x9f"  # controls except tab and line break
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\ufdd0-\ufdef"
    "\ue000-\uf8ff\U000f0000-\U0010ffff"  # private use
    f"{SELECTORS}{TAGS}\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
# Arabic, Syriac, N'Ko, scripts of India, Tibet and South-East Asia, Mongolian.
JOINING_SCRIPTS = (
    "\u0600-\u060b\u0610-\u0619\u0620-\u085f\u0870-\u08ff\u0900-\u0dff\u0f00-\u109f"
    "\u1780-\u17b3\u17b6-\u17ff\u1800-\u180a\u1810-\u18af\u1a00-\u1aaf\u1b00-\u1bff"
    "\ua800-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff"
)
JAMO = "\u1100-\u115e\u1161-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
FLAG = (
    "\U0001f3f4[\U000e0061-\U000e007a]{2}"
    "[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,4}\U000e007f"
)
ALLOWED_INVISIBLE = (
    FLAG,
    f"(?<=[{EMOJI}])[\ufe0e\ufe0f]",
    "(?<=[0-9#*])\ufe0f(?=\u20e3)",  # keycaps
    f"(?<=[{EMOJI}\ufe0f])\u200d(?=[{EMOJI}])",
    f"(?<=[{JOINING_SCRIPTS}])[\u200c\u200d](?![{INVISIBLE}])",
    f"(?<=[{HAN}])[{SELECTORS}]",
    "(?<=[\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f\u2205-\u2aff])[\ufe00\ufe01]",
    "(?<=[\u1820-\u18aa])[\u180b-\u180f]",
    f"[\u115f\u1160](?=[{JAMO}])|(?<=[{JAMO}])[\u115f\u1160]",
)
_SUSPECT = re.compile(f"[{INVISIBLE}]")
# A third of the time for ASCII, and most requests are in English.
_SUSPECT_ASCII = re.compile("[\0-\b\v\f\x0e-\x1f\x7f]")
# In JSON, controls are escaped; an escaped backslash before these letters is only a suspect.
_ESCAPED_CONTROL = re.compile(r"\\[bfu]")
_INVISIBLE_PARTS = re.compile(
    f"(?P<needed>{'|'.join(ALLOWED_INVISIBLE)})|(?P<gap>[\u3164\uffa0])|[{INVISIBLE}]"
)


def strip_invisible(text: str) -> str:
    """Remove invisible characters from the text."""
    suspect = _SUSPECT_ASCII if text.isascii() else _SUSPECT
    return _INVISIBLE_PARTS.sub(_replacement, text) if suspect.search(text) else text


def _replacement(match: re.Match[str]) -> str:
    return match["needed"] or (" " if match["gap"] else "")


def strip_invisible_value(value: Any) -> Any:
    """Remove invisible characters from every string and key of the data."""
    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, Mapping):
        return {
            strip_invisible_value(key): strip_invisible_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [strip_invisible_value(item) for item in value]
    return value


def strip_invisible_json(value: Any) -> Any:
    """Do the same for data that seldom has any, in one pass over its JSON."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # it has values that JSON lacks
        return strip_invisible_value(value)
    # Two searches take less time than one for either.
    is_suspect = "\x7f" in text if text.isascii() else _SUSPECT.search(text)
    is_suspect = is_suspect or _ESCAPED_CONTROL.search(text)
    return strip_invisible_value(value) if is_suspect else value


def strip_invisible_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Remove invisible characters from a message, except from parts the provider signed."""
    stripped = dict(message)
    if stripped.get("content"):
        stripped["content"] = strip_invisible_value(stripped["content"])
    if calls := stripped.get("tool_calls"):
        stripped["tool_calls"] = [
            {**call, "function": strip_invisible_value(call["function"])}
            if "function" in call
            else dict(call)
            for call in calls
        ]
    return stripped
