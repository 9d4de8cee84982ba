"""Why nothing is learned."""


class ExperienceRejected(Exception):
    """Raised with a sentence for the user."""
