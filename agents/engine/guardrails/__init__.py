"""Guardrails: patterns applied to what goes into a run and what comes out of it."""

from .checks import (
    STAGES,
    GuardrailAction,
    GuardrailResult,
    Guardrails,
    Inspection,
    Pattern,
)
from .confusables import fold
from .invisible import strip_invisible
from .model_checks import (
    JUDGE_PROMPT,
    JUDGED_NOTE,
    CheckLimitReached,
    JudgeReply,
    ModelCheck,
    ModelChecks,
)
from .normalization import LINK_TARGET, MAX_GAP_CHARS, normalize
from .patterns import Stage
from .stream_filter import Match, find_matches

__all__ = [
    "CheckLimitReached",
    "GuardrailAction",
    "GuardrailResult",
    "Guardrails",
    "Inspection",
    "JUDGED_NOTE",
    "JUDGE_PROMPT",
    "JudgeReply",
    "LINK_TARGET",
    "MAX_GAP_CHARS",
    "Match",
    "ModelCheck",
    "ModelChecks",
    "Pattern",
    "STAGES",
    "Stage",
    "find_matches",
    "fold",
    "normalize",
    "strip_invisible",
]
