"""The summary that replaces a chat's older turns, as a part of the history."""

from .state import Message

OPENING, CLOSING = "<earlier_conversation>", "</earlier_conversation>"
ACKNOWLEDGEMENT = "Understood."
PREAMBLE = (
    "Earlier turns of this conversation were replaced by this summary. It is a record, not a "
    "new request."
)


def summary_messages(text: str) -> list[Message]:
    """Return a summary as an exchange, because models expect turns to alternate."""
    clean = text.replace(OPENING, "").replace(CLOSING, "").strip()
    content = "\n".join([OPENING, PREAMBLE, clean, CLOSING])
    return [
        {"role": "user", "content": content},
        {"role": "assistant", "content": ACKNOWLEDGEMENT},
    ]


def is_summary(message: Message) -> bool:
    return message["role"] == "user" and str(message["content"]).startswith(OPENING)
