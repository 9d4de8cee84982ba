"""Parses an Action in ReAct text: a tool and its input, in any notation."""

import ast
import json
import re
from typing import Any

_QUOTES = " \t\n`*'\"“”‘’「」『』"
_NAME_PUNCTUATION = _QUOTES + "[](){}<>【】.,;:!。、：；"
_CLOSING = {"(": ")", "[": "]", "（": "）"}
_INLINE_INPUT_LABEL = re.compile(
    r"\s(?:action[ _]input|行動入力|アクション入力)\s?[:：]", re.IGNORECASE
)
_FINAL_ANSWER_LABEL = re.compile(r"(?:final answer|最終回答)\s?[:：]", re.IGNORECASE)
_NONE_WORDS = {"none", "n/a", "na", "null", "nil", "-", "なし", "無し"}
_NONE_ACTIONS = _NONE_WORDS | {"no action", "no tool", "final answer", "final_answer", "finish"}
_NONE_ACTIONS |= {"不要", "最終回答"}
_NAME_KEYS = ("action", "tool", "name")
_INPUT_KEYS = ("action_input", "tool_input", "input", "arguments", "args", "parameters")
_MAX_CALL_CHARS = 4000


def parse_action(action: str, input: str) -> tuple[str, Any]:
    """Return the tool's name and its input, as data if it is JSON."""
    action = _strip_fence(action.strip())
    if action.startswith("{") and isinstance(blob := _parse_value(action), dict):
        # {"action": "search", "action_input": …} and its variants
        name = next((blob[key] for key in _NAME_KEYS if isinstance(blob.get(key), str)), "")
        name = name.strip()
        value = next((blob[key] for key in _INPUT_KEYS if key in blob), "")
    else:
        name, value = _parse_lines(action)
    return name, _parse_value(input) if input.strip() else value


def is_no_action(name: str) -> bool:
    """Whether the model said that it wants no tool."""
    return name.lower() in _NONE_ACTIONS


def answer_text(value: Any) -> str:
    """Return the answer that a model wrote as the input of no tool."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    text = "" if value in (None, {}) else _to_text(value).strip()
    return "" if text.lower() in _NONE_WORDS else text


def to_arguments(value: Any) -> str:
    """Return the input as JSON arguments."""
    if value is None or value == "":
        return "{}"
    return _to_json(value if isinstance(value, dict) else {"input": _to_text(value)})


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else _to_json(value)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parse_lines(action: str) -> tuple[str, Any]:
    if is_no_action(action):
        return action, ""
    first_line, _, further_lines = action.partition("\n")
    name, inline = _split_call(first_line.strip())
    if is_no_action(name):
        return name, _parse_value(inline or further_lines)
    if inline:
        return name, _parse_inline(inline)
    value = _parse_value(further_lines)
    return name, value if isinstance(value, dict) else ""


def _split_call(line: str) -> tuple[str, str]:
    """Split `search`, `search("x")`, `search[x]`, `search {…}`, `search Action Input: x`."""
    if label := _INLINE_INPUT_LABEL.search(line):
        return line[: label.start()].strip(_NAME_PUNCTUATION), line[label.end() :]
    if label := _FINAL_ANSWER_LABEL.match(line):
        return "none", line[label.end() :]
    bare = line.strip(_QUOTES).rstrip(".,;。、")
    brackets = [bare.find(bracket) for bracket in "([{（"]
    start = min((index for index in brackets if index > 0), default=0)
    name = bare[:start].strip(_QUOTES + ":：")
    input = bare[start:].strip(_QUOTES)
    if name and len(name.split()) == 1:
        if input.startswith("{"):
            return name, input
        if input.endswith(_CLOSING[input[0]]):
            return name, input[1:-1]
    return line.strip(_NAME_PUNCTUATION), ""


def _parse_inline(text: str) -> Any:
    """Parse the text in a call's brackets: `query="x", top=3` is an object."""
    text = text.strip()
    if len(text) < _MAX_CALL_CHARS and "=" in text:
        try:
            call = ast.parse(f"call({text})", mode="eval").body
            if not isinstance(call, ast.Call) or call.args:
                return text
            arguments = {
                keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords
            }
            # Python values that JSON lacks, such as sets, fail.
            return json.loads(json.dumps(arguments, allow_nan=False))
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return text
    is_quoted = len(text) > 1 and text[0] == text[-1] == "'"
    return text[1:-1] if is_quoted else _parse_value(text)


def _parse_value(text: str) -> Any:
    """Return the value of JSON, in a fence or not, and anything else as text."""
    text = text.strip()
    inner = _strip_fence(text)
    for candidate in (inner, _fence_content(text)[0]):
        if not candidate:
            return inner
        try:
            value, end = _DECODER.raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        tail = candidate[end:].lstrip(" \t")
        # Text on the lines below an object is ignored.
        is_talk = isinstance(value, dict) and tail[:1] == "\n" and tail.lstrip()[:1] != "{"
        if is_talk or not tail.strip():
            return value
    return inner


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# Not strict: models put plain line breaks into strings.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_reject_constant)


def _strip_fence(text: str) -> str:
    """Remove a fence or backticks around the whole text."""
    inner, tail = _fence_content(text)
    if inner and not tail:
        return inner
    is_quoted = len(text) > 1 and text[0] == text[-1] == "`" and text.count("`") == 2
    return text[1:-1].strip() if is_quoted else text


def _fence_content(text: str) -> tuple[str, str]:
    """Return the content of the fence the text starts with, and what follows it."""
    if not text.startswith(("```", "~~~")):
        return "", ""
    marker = text[: len(text) - len(text.lstrip(text[0]))]
    _, _, body = text.partition("\n")
    inner, _, tail = f"\n{body}".partition(f"\n{marker}")
    return inner.strip(), tail.strip()
