"""Marks text from outside in a request, so that a model can tell it from instructions."""

import re

from agents.engine.prompt_parts import NOTE_PROMPT

OPENING_TEMPLATE = '<untrusted_content from="{tool}">'
CLOSING = "</untrusted_content>"
# A text can't close its own marks, nor open a message as a chat template would.
_LOOKALIKE = re.compile(
    r"<(?=\s{0,3}/?\s{0,3}untrusted[\s_\-]{0,3}content)|<(?=\|)|<(?=<\s?/?SYS>)|\[(?=/?INST\])",
    re.IGNORECASE,
)
_REPLACED = {"<": "‹", "[": "［"}
_MARKS = re.compile(
    rf'<untrusted_content from="[\w.-]*">\n{re.escape(NOTE_PROMPT)}\n|\n{CLOSING}'
)


def wrap_untrusted(text: str, tool: str) -> str:
    """Return the text between marks that it can't contain itself."""
    safe = _LOOKALIKE.sub(lambda match: _REPLACED[match[0]], text)
    name = re.sub(r"[^\w.-]", "_", tool)
    return "\n".join([OPENING_TEMPLATE.format(tool=name), NOTE_PROMPT, safe, CLOSING])


def unwrap(text: str) -> str:
    """Return the text without its marks."""
    return _MARKS.sub("", text)
