"""Texts that are too long for a model, a row or a page."""

import re

CUT_NOTE = re.compile(r"\[… [\d,]+ more characters cut\]\s*\Z")
MAX_WORD_CHARS = 20


def truncate(text: str, limit: int) -> str:
    """Return the beginning of a longer text, to the end of a paragraph, line or word."""
    if len(text) <= limit:
        return text
    start = limit - max(limit // 10, min(limit // 2, MAX_WORD_CHARS))
    for separator in ("\n\n", "\n", " "):
        end = text.rfind(separator, start, limit + 1)
        if end > 0:
            return text[:end]
    return text[:limit]


def shorten(text: str, limit: int) -> str:
    """Return the text in up to this many characters, with an ellipsis for the rest."""
    return text if len(text) <= limit else f"{truncate(text, limit - 1).rstrip()}…"


def shorten_line(text: str, limit: int) -> str:
    """Return the text on one line of up to this many characters."""
    return shorten(" ".join(text.split()), limit)


def shorten_middle(text: str, limit: int, gap: str = "…") -> str:
    """Return the beginning and the end of a longer text, with a gap for the rest."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}{gap}{text[-half:]}"


def cut_text(text: str, limit: int) -> str:
    """Return the beginning of a longer text, and how many characters follow, for a model."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit:,} more characters cut]"
