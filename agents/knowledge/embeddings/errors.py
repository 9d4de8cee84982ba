"""Why texts couldn't be embedded."""


class EmbeddingUnavailable(Exception):
    """Raised with a sentence when there are no vectors; full text still answers."""
