"""Why something isn't remembered or learned."""


class NoteRejected(Exception):
    """Raised with a sentence for the user."""
