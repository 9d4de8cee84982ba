"""Why a document or an operation can't be used."""


class BadDocument(ValueError):
    """This isn't an OpenAPI document that can be read."""


class Unsupported(Exception):
    """Raised when an operation can't become a tool; the message is the reason."""
