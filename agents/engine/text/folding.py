"""Text as it is compared."""

import unicodedata


def fold(text: str) -> str:
    """Return the text without differences in width, case and spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
