"""What the demo model says about memory: a summary of a chat, and that a fact is saved."""

import re
from typing import Any

from agents.engine.history_summary import OPENING, PREAMBLE
from agents.engine.text import is_japanese, shorten_line

MAX_LINES = 12
MAX_CHARS = 120
ASKED = re.compile(rf"write the summary that replaces.*{OPENING}", re.DOTALL)
SAVED = re.compile(r'Saved just now, because the user asked for it: "(?P<text>.+)"')
LINE = re.compile(
    r"^(User|Assistant): (.+?)(?=^(?:User|Assistant|Tool result): |\Z)", re.M | re.S
)


def write(messages: list[Any]) -> str | None:
    """Return a summary if one is asked for."""
    first = messages[0] if messages else {}
    if first.get("role") != "system" or not ASKED.search(str(first.get("content"))):
        return None
    text = str(messages[-1].get("content", "")).replace(PREAMBLE, "")
    said = [_line(*found.groups()) for found in LINE.finditer(text)]
    return "\n".join(line for line in said[-MAX_LINES:] if line) or "…"


def confirm(messages: list[Any]) -> str | None:
    """Return that a fact was saved, if the instructions say so."""
    last = messages[-1] if messages else {}
    told = (str(m.get("content")) for m in (*messages[:1], last) if m.get("role") != "tool")
    found = next((match for text in told if (match := SAVED.search(text))), None)
    if found is None or last.get("role") != "user":
        return None
    if is_japanese(found["text"]):
        return f"覚えました：「{found['text']}」"
    return f"I'll remember: {found['text']}"


def _line(speaker: str, words: str) -> str:
    short = shorten_line(re.sub(r"</?earlier_conversation>", " ", words), MAX_CHARS)
    return f"- {speaker}: {short}" if short else ""
