"""Messages: sent, queued, answered, edited."""

from .dispatching import answer_next, answer_waiting, dispatch
from .submission import MAX_MESSAGE_BYTES, Page, clean_text, save, submit

__all__ = [
    "MAX_MESSAGE_BYTES",
    "Page",
    "answer_next",
    "answer_waiting",
    "clean_text",
    "dispatch",
    "save",
    "submit",
]
