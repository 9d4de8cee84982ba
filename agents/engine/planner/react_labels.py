"""Markers in ReAct text: labels, code fences, special tokens.

Text arrives in pieces, so each marker has a test for its prefix: `safe_…_end` says how much of
the text can't become a marker. Every repetition in a pattern is bounded and no pattern starts
twice at one position, so parsing is linear.
"""

import re
from enum import StrEnum


class ReactSection(StrEnum):
    OPENING = "opening"
    THOUGHT = "thought"
    ACTION = "action"
    INPUT = "input"
    OBSERVATION = "observation"
    ANSWER = "answer"


LABELS = {
    **dict.fromkeys(("thought", "thoughts", "思考", "思考過程", "考え"), ReactSection.THOUGHT),
    **dict.fromkeys(("action", "行動", "アクション"), ReactSection.ACTION),
    **dict.fromkeys(
        ("action input", "action_input", "actioninput", "input"), ReactSection.INPUT
    ),
    **dict.fromkeys(("行動入力", "行動の入力", "アクション入力", "入力"), ReactSection.INPUT),
    **dict.fromkeys(("アクションの入力", "アクションインプット"), ReactSection.INPUT),
    **dict.fromkeys(
        ("observation", "観察", "観察結果", "観測", "観測結果"), ReactSection.OBSERVATION
    ),
    **dict.fromkeys(
        ("final answer", "final_answer", "finalanswer", "answer"), ReactSection.ANSWER
    ),
    **dict.fromkeys(
        ("最終回答", "最終的な回答", "最終解答", "最終的な答え"), ReactSection.ANSWER
    ),
    **dict.fromkeys(("回答", "答え"), ReactSection.ANSWER),
}

# Everyday words, which are labels only where that label is expected.
BEFORE_ANSWER = {ReactSection.OPENING, ReactSection.THOUGHT}
ALLOWED_AFTER = {
    **dict.fromkeys(("answer", "回答", "答え"), BEFORE_ANSWER),
    **dict.fromkeys(("input", "入力"), {ReactSection.ACTION}),
}

_BLANK = " \t\u3000\ufeff\u200b"
_LABEL_WORDS = "|".join(sorted(LABELS, key=len, reverse=True))
_FENCE = r"(?P<{0}>`{{3,16}}|~{{3,16}})(?P<{0}_info>[^`\n]{{0,64}})$"
_CLOSING_DECOR = r"[*_】\]]{0,3}"
MARKER = re.compile(
    rf"^[{_BLANK}]{{0,8}}(?:{_FENCE.format('fence')}"
    rf"|(?P<decor>[#*_【\[][#*_【\[ ]{{0,7}})?(?:\d{{1,3}}[.)．][ ]{{0,2}})?"
    rf"(?P<bold>[*_【\[]{{1,3}})?(?P<label>{_LABEL_WORDS})"
    rf"[ *_】\]]{{0,4}}(?:[#＃]?\d{{1,3}})?[ *_】\]]{{0,4}}"
    rf"(?:(?P<colon>[:：]|(?<=】))(?(decor){_CLOSING_DECOR}|(?(bold){_CLOSING_DECOR}))"
    rf"|(?(decor)$|(?(bold)$|(?!))))"
    rf"(?:[{_BLANK}]{{0,8}}{_FENCE.format('block')})?)",
    re.ASCII | re.IGNORECASE | re.MULTILINE,
)
_MAX_MARKER_CHARS = 200
_PARTIAL_FENCE = re.compile(r"`{1,2}|~{1,2}|(?:`{3,16}|~{3,16})[^`\n]{0,64}")
_BEFORE_LABEL = _BLANK + "#*_【[.)．0123456789"
_AFTER_COLON = _BLANK + "*_】]"
_AFTER_LABEL = _AFTER_COLON + "#＃0123456789"

SPECIAL_TOKEN = re.compile(
    r"<[|｜][\w▁]{1,40}[|｜]>|</s>(?=[\s<]|\Z)|<(?:eos|bos|start_of_turn|end_of_turn)>"
    r"|<(?P<tag>/?think(?:ing)?)>",
    re.ASCII | re.IGNORECASE,
)
_MAX_TOKEN_CHARS = 44
_PARTIAL_TOKEN = re.compile(r"<[|｜][\w▁]{0,40}[|｜]?", re.ASCII)
_TAGS = (
    "</s>",
    "<eos>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
)


def safe_token_end(text: str) -> int:
    """Return how much of the text can't be the start of a special token or line end."""
    start = text.rfind("<", max(0, len(text) - _MAX_TOKEN_CHARS))
    if start >= 0:
        tail = text[start:].lower()
        if _PARTIAL_TOKEN.fullmatch(tail) or any(tag.startswith(tail) for tag in _TAGS):
            return start
    return len(text) - text.endswith("\r")


def safe_marker_end(text: str, line_start: int) -> int:
    """Return how much of the text can't become a marker; a line starts at `line_start`."""
    start = max(line_start, text.rfind("\n") + 1)
    line = text[start : start + _MAX_MARKER_CHARS + 1]
    if len(line) > _MAX_MARKER_CHARS or not line:
        return len(text)
    if _PARTIAL_FENCE.fullmatch(line.lstrip(_BLANK)):
        return start
    beginning = line.lstrip(_BEFORE_LABEL).lower()
    for label in LABELS:
        if label.startswith(beginning):
            return start
        if beginning.startswith(label):
            tail = beginning[len(label) :].lstrip(_AFTER_LABEL)
            if tail.startswith((":", "：")):
                tail = tail[1:].lstrip(_AFTER_COLON)
            if not tail or _PARTIAL_FENCE.fullmatch(tail):
                return start
    return len(text)


def cut_at_label(input: str) -> str:
    """Cut the input at the first label, if its fence was never closed."""
    marks = (mark.start() for mark in MARKER.finditer(input) if mark["colon"])
    return input[: next(marks, len(input))]
