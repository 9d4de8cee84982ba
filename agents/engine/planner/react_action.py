"""What an Action in ReAct text says: a tool and its input, wherever they were written."""

import ast
import json
import re
from typing import Any

_QUOTES = " \t\n`*'\"“”‘’「」『』"
_AROUND_NAME = _QUOTES + "[](){}<>【】.,;:!。、：；"
_CLOSING = {"(": ")", "[": "]", "（": "）"}
_ONE_LINE = re.compile(r"\s(?:action[ _]input|行動入力|アクション入力)\s?[:：]", re.IGNORECASE)
_FINAL = re.compile(r"(?:final answer|最終回答)\s?[:：]", re.IGNORECASE)
_NONE = {"none", "n/a", "na", "null", "nil", "-", "なし", "無し"}
_NO_ACTION = _NONE | {"no action", "no tool", "final answer", "final_answer", "finish"}
_NO_ACTION |= {"不要", "最終回答"}
_NAMES = ("action", "tool", "name")
_INPUTS = ("action_input", "tool_input", "input", "arguments", "args", "parameters")
_LONGEST_CALL = 4000


def read(action: str, input: str) -> tuple[str, Any]:
    """The tool's name, and its input as data where it is JSON, else as text."""
    action = _unfenced(action.strip())
    if action.startswith("{") and isinstance(blob := _value(action), dict):
        name, value = _read_blob(blob)
    else:
        name, value = _read_lines(action)
    return name, _value(input) if input.strip() else value


def is_none(name: str) -> bool:
    """Whether this is a model's way to say that it wants no tool."""
    return name.lower() in _NO_ACTION


def answer(value: Any) -> str:
    """The answer that a model gave as the input of no tool."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    text = "" if value in (None, {}) else _text(value).strip()
    return "" if text.lower() in _NONE else text


def arguments(value: Any) -> str:
    """The input as the arguments of a call."""
    if value is None or value == "":
        return "{}"
    return _json(value if isinstance(value, dict) else {"input": _text(value)})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read_blob(blob: dict[str, Any]) -> tuple[str, Any]:
    """`{"action": "search", "action_input": …}` and its relatives."""
    name = next((blob[key] for key in _NAMES if isinstance(blob.get(key), str)), "")
    return name.strip(), next((blob[key] for key in _INPUTS if key in blob), "")


def _read_lines(action: str) -> tuple[str, Any]:
    if is_none(action):
        return action, ""
    first, _, rest = action.partition("\n")
    name, inline = _split(first.strip())
    if is_none(name):
        return name, _value(inline or rest)
    if inline:
        return name, _inline(inline)
    value = _value(rest)
    return name, value if isinstance(value, dict) else ""


def _split(line: str) -> tuple[str, str]:
    """`search`, `search("x")`, `search[x]`, `search {…}`, `search Action Input: x`."""
    if label := _ONE_LINE.search(line):
        return line[: label.start()].strip(_AROUND_NAME), line[label.end() :]
    if label := _FINAL.match(line):
        return "none", line[label.end() :]
    bare = line.strip(_QUOTES).rstrip(".,;。、")
    at = min((at for sign in "([{（" if (at := bare.find(sign)) > 0), default=0)
    name, rest = bare[:at].strip(_QUOTES + ":："), bare[at:].strip(_QUOTES)
    if name and len(name.split()) == 1:
        if rest.startswith("{"):
            return name, rest
        if rest.endswith(_CLOSING[rest[0]]):
            return name, rest[1:-1]
    return line.strip(_AROUND_NAME), ""


def _inline(text: str) -> Any:
    """What stands in a call's brackets: `query="x", top=3` is an object."""
    text = text.strip()
    if len(text) < _LONGEST_CALL and "=" in text:
        try:
            return _keywords(text)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return text
    is_quoted = len(text) > 1 and text[0] == text[-1] == "'"
    return text[1:-1] if is_quoted else _value(text)


def _keywords(text: str) -> Any:
    """The keywords as JSON data; Python has values, such as sets, that JSON has not."""
    call = ast.parse(f"call({text})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError("not a call with keywords only")
    words = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
    return json.loads(json.dumps(words, allow_nan=False))


def _value(text: str) -> Any:
    text = text.strip()
    inner = _unfenced(text)
    for candidate in (inner, _fenced(text)[0]):
        try:
            return _decoded(candidate) if candidate else inner
        except (ValueError, RecursionError):
            continue
    return inner


def _decoded(text: str) -> Any:
    """JSON, also when the model went on talking on the lines below an object."""
    value, end = _DECODER.raw_decode(text)
    rest = text[end:].lstrip(" \t")
    is_talk = isinstance(value, dict) and rest[:1] == "\n" and rest.lstrip()[:1] != "{"
    if rest.strip() and not is_talk:
        raise ValueError("several values, or something that is not JSON")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# Not strict: models put plain line breaks into strings.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)


def _unfenced(text: str) -> str:
    """The text without a fence, or backticks, around the whole of it."""
    inner, after = _fenced(text)
    if inner and not after:
        return inner
    is_quoted = len(text) > 1 and text[0] == text[-1] == "`" and text.count("`") == 2
    return text[1:-1].strip() if is_quoted else text


def _fenced(text: str) -> tuple[str, str]:
    """What is in the fence that the text begins with, and what comes after it."""
    if not text.startswith(("```", "~~~")):
        return "", ""
    marker = text[: len(text) - len(text.lstrip(text[0]))]
    _, _, body = text.partition("\n")
    inner, _, after = f"\n{body}".partition(f"\n{marker}")
    return inner.strip(), after.strip()
