"""Compares answers, ignoring how they are written."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from agents.engine.text import JAPANESE, fold

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,])(-?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?(?![A-Za-z0-9_]|[.,]\d)"
)
_STRAY_POINT = re.compile(r"(?<!\d)\.|\.(?!\d)")
_STRAY_MINUS = re.compile(r"(?<=\w)-|-(?!\d)")
# Japanese and Chinese have no spaces between words.
_JAPANESE_SPACES = re.compile(rf"\s+(?=[{JAPANESE}])|(?<=[{JAPANESE}])\s+")
_SIGNIFICANT_CHARS = {".", "-", "%", "‰"}
_KEPT_CATEGORIES = {"L", "N", "M"}
_SYMBOL_CATEGORIES = {"Sc", "Sm", "So"}


def normal_form(value: Any) -> str:
    """Return the value without differences in width, case, punctuation and number format."""
    if not isinstance(value, str):
        return json.dumps(
            _normalize_leaves(value), sort_keys=True, ensure_ascii=False, default=str
        )
    text = fold(value).replace("−", "-")
    text = _STRAY_MINUS.sub(" ", _STRAY_POINT.sub(" ", _NUMBER.sub(_normalize_number, text)))
    significant = list[str]()
    for character in text:
        category = unicodedata.category(character)
        is_symbol = category in _SYMBOL_CATEGORIES and character != "|"
        is_significant = (
            category[0] in _KEPT_CATEGORIES or is_symbol or character in _SIGNIFICANT_CHARS
        )
        significant.append(character if is_significant else " ")
    return _JAPANESE_SPACES.sub("", " ".join("".join(significant).split()))


def group_equal(answers: Mapping[str, Any]) -> list[list[str]]:
    """Return the names of those with equal answers, largest group first."""
    groups: dict[str, list[str]] = {}
    for name, answer in answers.items():
        groups.setdefault(normal_form(answer), []).append(name)
    return sorted(groups.values(), key=len, reverse=True)


def _normalize_leaves(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _normalize_leaves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normalize_leaves(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return normal_form(value) if isinstance(value, str) else value


def _normalize_number(match: re.Match[str]) -> str:
    sign = match[1]
    integer = match[2].replace(",", "").lstrip("0") or "0"
    fraction = (match[3] or "").rstrip("0")
    return f"{sign}{integer}{'.' if fraction else ''}{fraction}"
