"""Guardrails: patterns applied to what goes into a run and what comes out of it."""

from .checks import STAGES, GuardrailAction, Guardrails, Inspection, Pattern, try_pattern
from .confusables import fold
from .invisible import strip_invisible
from .normalization import LINK_TARGET, MAX_GAP_CHARS, normalize
from .patterns import Stage
from .stream_filter import Match, find_matches

__all__ = [
    "GuardrailAction",
    "Guardrails",
    "Inspection",
    "LINK_TARGET",
    "MAX_GAP_CHARS",
    "Match",
    "Pattern",
    "STAGES",
    "Stage",
    "find_matches",
    "fold",
    "normalize",
    "strip_invisible",
    "try_pattern",
]
