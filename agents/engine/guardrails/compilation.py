"""Compiles RE2 expressions with a limit of memory."""

from functools import lru_cache
from typing import Any

import re2

from agents.engine.errors import BadPattern

from ..sentences import Sentence as _

MAX_MEMORY_BYTES = 8 << 20


@lru_cache(maxsize=1024)
def compile_re2(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError as error:
        raise BadPattern(_("This pattern contains an invalid character.")) from error
    except re2.error as error:
        reason = error.args[0]
        message = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise BadPattern(
            _("Invalid regular expression (RE2): %(words)s.", words=message)
        ) from error


@lru_cache(maxsize=256)
def compile_any(patterns: tuple[str, ...]) -> Any:
    """Compile one pattern that matches any of these, or None if it is too large."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES * 4
    try:
        return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns), options)
    except re2.error:
        return None
