import logging
import re
from typing import Any

from agents.engine.privacy import MASK, mask_secrets

# Whoever has the end of these addresses is let in by it.
LINK_TOKENS = re.compile(r"(/(?:shared|join|welcome/[^/\s]+)/)[^/\s?'\"]+")


class RedactingFormatter(logging.Formatter):
    """Lines without what opens a door: tokens of links, and keys that an error told."""

    def format(self, record: logging.LogRecord) -> str:
        return LINK_TOKENS.sub(rf"\1{MASK}", super().format(record))

    def formatException(self, ei: Any) -> str:
        return mask_secrets(super().formatException(ei))
