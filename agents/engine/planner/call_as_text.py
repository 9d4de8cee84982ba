"""Recognizes a tool call that a model wrote as its answer, in the notation of its training."""

import json
import re

MAX_CALL_CHARS = 20_000
_FENCE = re.compile(r"\A```\w*\s*(.*?)\s*```\Z", re.DOTALL)
# With these around it, a call is one even if its JSON is broken; the end may be missing.
_TAGGED_CALL = re.compile(r"<tool_call>.*?(?:</tool_call>|\Z)", re.DOTALL)
_OPENINGS = ("[TOOL_CALLS]", "<function=", "<|python_tag|>", "<|tool_call")
_LABELED_CALL = re.compile(
    r"(?:Thought:[^\n]*\n+)?Action:[^\n]+\n+Action Input:", re.IGNORECASE
)
_NAME_KEYS = {"name", "tool", "action", "function"}
_INPUT_KEYS = {"arguments", "parameters", "action_input", "tool_input", "input", "args"}
_OTHER_KEYS = {"id", "type", "thought"}


def is_call_as_text(text: str) -> bool:
    """Whether the text is a call and nothing else."""
    text = text.strip()
    if not text or text[0] not in "{[<`AaTt" or len(text) > MAX_CALL_CHARS:
        return False
    if fence := _FENCE.match(text):
        text = fence[1]
    if text.startswith(_OPENINGS) or _LABELED_CALL.match(text):
        return True
    if not _TAGGED_CALL.sub("", text).strip():
        return True
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(map(_is_call, calls))


def _is_call(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    keys = value.keys()
    has_both = bool(keys & _NAME_KEYS and keys & _INPUT_KEYS)
    return has_both and keys <= _NAME_KEYS | _INPUT_KEYS | _OTHER_KEYS
