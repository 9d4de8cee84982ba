"""Errors of the chat; the user sees their text."""


class MessageRejected(Exception):
    """Raised when a message is rejected; the user sees the reason."""


class MessageTooLong(MessageRejected):
    """Raised when a message is too long to be answered; `percent` of it would fit."""

    def __init__(self, sentence: str, percent: int) -> None:
        super().__init__(sentence)
        self.percent = percent


class ClientIdConflict(MessageRejected):
    """Raised when the page's id for this message belongs to another one; it needs a new id."""
