"""Personal data and secrets: found, masked, and replaced by pseudonyms."""

from .masking import mask

__all__ = ["mask"]
