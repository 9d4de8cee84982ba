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
    lines = []
    for match in list(LINE.finditer(text))[-MAX_LINES:]:
        short = shorten_line(re.sub(r"</?earlier_conversation>", " ", match[2]), MAX_CHARS)
        if short:
            lines.append(f"- {match[1]}: {short}")
    return "\n".join(lines) or "…"


def confirm(messages: list[Any]) -> str | None:
    """Return that a fact was saved, if the instructions say so."""
    last = messages[-1] if messages else {}
    if last.get("role") != "user":
        return None
    for message in (*messages[:1], last):
        if message.get("role") == "tool":
            continue
        if match := SAVED.search(str(message.get("content"))):
            fact = match["text"]
            return f"覚えました：「{fact}」" if is_japanese(fact) else f"I'll remember: {fact}"
    return None
