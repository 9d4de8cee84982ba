"""Errors of the chat; the user sees their text."""


class MessageRejected(Exception):
    """Raised when a message is rejected; the user sees the reason."""


class ClientIdConflict(MessageRejected):
    """Raised when the page's id for this message belongs to another one; it needs a new id."""
