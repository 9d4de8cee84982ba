"""How many examples Hypothesis tries."""

from hypothesis import settings

USUAL = 100


def many(count: int) -> settings:
    """Try more examples than usual; `make test` tries a fifth of them."""
    return settings(max_examples=count * settings.default.max_examples // USUAL)
