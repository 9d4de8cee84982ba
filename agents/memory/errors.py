"""Why something isn't remembered."""


class MemoryRejected(Exception):
    """Raised with a sentence for the user."""
