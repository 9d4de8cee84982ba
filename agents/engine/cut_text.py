"""Texts that are too long for a model or a page: cut, with a note of how much is missing."""

import re

CUT_NOTE = re.compile(r"\[… [\d,]+ more characters cut\]\s*\Z")


def cut_text(text: str, limit: int) -> str:
    """Return the beginning of a longer text, and how many characters follow."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit:,} more characters cut]"
