"""Masks secrets in logs."""

import logging
import re
from typing import Any

from agents.engine.privacy import MASK, mask_secrets

# The last part of these URLs grants access.
LINK_TOKENS = re.compile(r"(/(?:shared|join|welcome/[^/\s]+)/)[^/\s?'\"]+")


class RedactingFormatter(logging.Formatter):
    """Masks tokens of links, and keys in errors."""

    def format(self, record: logging.LogRecord) -> str:
        return LINK_TOKENS.sub(rf"\1{MASK}", super().format(record))

    def formatException(self, ei: Any) -> str:
        return mask_secrets(super().formatException(ei))
