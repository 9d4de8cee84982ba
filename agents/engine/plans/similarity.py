"""Whether two answers are the same but for how they are written."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,])(-?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?(?![A-Za-z0-9_]|[.,]\d)"
)
_NO_POINT = re.compile(r"(?<!\d)\.|\.(?!\d)")
_NO_MINUS = re.compile(r"(?<=\w)-|-(?!\d)")
# Japanese and Chinese have no spaces between words.
_SIGN = r"[\u3040-\u30ff\u3400-\u9fff]"
_BESIDE_SIGNS = re.compile(rf"\s+(?={_SIGN})|(?<={_SIGN})\s+")
_MEANS_SOMETHING = {".", "-", "%", "‰"}
_KEPT = {"L", "N", "M"}
_SYMBOLS = {"Sc", "Sm", "So"}


def normal(value: Any) -> str:
    """The value without what does not matter: width, case, punctuation, how a number is put."""
    if not isinstance(value, str):
        return json.dumps(_leaves(value), sort_keys=True, ensure_ascii=False, default=str)
    text = unicodedata.normalize("NFKC", value).casefold().replace("−", "-")
    text = _NO_MINUS.sub(" ", _NO_POINT.sub(" ", _NUMBER.sub(_number, text)))
    kept = "".join(c if _matters(c) else " " for c in text)
    return _BESIDE_SIGNS.sub("", " ".join(kept.split()))


def alike(answers: Mapping[str, Any]) -> list[list[str]]:
    """Who says the same, by name: the most first."""
    groups: dict[str, list[str]] = {}
    for name, answer in answers.items():
        groups.setdefault(normal(answer), []).append(name)
    return sorted(groups.values(), key=len, reverse=True)


def _leaves(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _leaves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_leaves(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return normal(value) if isinstance(value, str) else value


def _number(found: re.Match[str]) -> str:
    sign, whole, part = found[1], found[2].replace(",", ""), (found[3] or "").rstrip("0")
    return f"{sign}{whole.lstrip('0') or '0'}{'.' if part else ''}{part}"


def _matters(character: str) -> bool:
    kind = unicodedata.category(character)
    is_symbol = kind in _SYMBOLS and character != "|"
    return kind[0] in _KEPT or is_symbol or character in _MEANS_SOMETHING
