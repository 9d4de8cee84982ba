class SuggestionRejected(Exception):
    """Raised when a suggestion can't be measured or applied; the user sees the reason."""
