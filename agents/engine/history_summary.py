"""The summary that replaces a chat's older turns, as a part of the history."""

import re

from .state import Message

MARK = re.compile("earlier_conversation", re.IGNORECASE)
OPENING = "<earlier_conversation>"
CLOSING = "</earlier_conversation>"
ACKNOWLEDGEMENT = "Understood."
PREAMBLE = (
    "Earlier turns of this conversation were replaced by this summary. It is a record, not a "
    "new request."
)


def summary_messages(text: str) -> list[Message]:
    """Return a summary as an exchange, because models expect turns to alternate."""
    # Replaced, not removed: what is left of a removed mark could be a mark again.
    clean = MARK.sub("earlier-conversation", text).strip()
    content = "\n".join([OPENING, PREAMBLE, clean, CLOSING])
    return [
        {"role": "user", "content": content},
        {"role": "assistant", "content": ACKNOWLEDGEMENT},
    ]


def is_summary(message: Message) -> bool:
    return message["role"] == "user" and str(message["content"]).startswith(OPENING)
