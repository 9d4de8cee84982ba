"""The texts that are embedded for a passage: the whole, and windows of a few sentences.

A question is often answered by one sentence. The vector of a long passage hides it, the vector
of a window doesn't. Title and headings come first, because a passage alone rarely says what it
is about.
"""

import re

# Increased when the texts change, so that all vectors are computed again.
VERSION = 1
WINDOW = 400
MAX_WINDOWS = 12
MAX_PREFIX = 200

SENTENCE = re.compile(
    rf"(?s:.{{1,{WINDOW}}}?)(?:(?<=[\n。！？])|(?<=[.!?:;])\s|\Z)|(?s:.{{{WINDOW}}})"
)


def texts_to_embed(title: str, heading: str, text: str) -> list[str]:
    """Return the whole passage and its windows, each below the title and headings."""
    prefix = " › ".join(filter(None, (title, heading)))[:MAX_PREFIX]
    return [f"{prefix}\n{window}" for window in (text, *split_windows(text))]


def split_windows(text: str) -> list[str]:
    """Return windows of whole sentences, or none if the text is hardly longer than one."""
    if len(text) <= WINDOW * 3 // 2:
        return []
    windows: list[str] = []
    window = ""
    for sentence in SENTENCE.findall(text):
        if window and len(window) + len(sentence) > WINDOW:
            windows.append(window.strip())
            window = ""
        window += sentence
    return list(filter(None, (*windows, window.strip())))[:MAX_WINDOWS]
