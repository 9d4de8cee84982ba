"""What a provider reports about a reply's usage, without what can't be true.

A count below zero would give back what other calls have used, and what isn't a finite number
can't be added or saved.
"""

from collections.abc import Mapping
from typing import Any

MAX_TOKENS = 1_000_000_000
MAX_DOLLARS = 1_000_000
MAX_AMOUNT = 10**15  # of whatever else is reported
MAX_DEPTH = 4  # of details of details


def reported_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage with plausible numbers only; what is missing is estimated or unknown."""
    return {name: value for name, value in usage.items() if _is_plausible(name, value)}


def has_counts(usage: Mapping[str, Any]) -> bool:
    """Whether the tokens of the prompt and of the reply are known."""
    return None not in (usage.get("prompt_tokens"), usage.get("completion_tokens"))


def _is_plausible(name: str, value: Any, depth: int = MAX_DEPTH) -> bool:
    if isinstance(value, Mapping):
        return depth > 0 and all(
            _is_plausible(key, item, depth - 1) for key, item in value.items()
        )
    if name.endswith("tokens") and value is not None:
        return isinstance(value, int) and 0 <= value <= MAX_TOKENS
    if isinstance(value, int | float):
        # False for NaN, too. What a cache saves can be a loss.
        return 0 <= value <= MAX_DOLLARS if name == "cost" else abs(value) <= MAX_AMOUNT
    return name != "cost" or value is None
