"""Limits across runs: what users, groups, agents, models and tools can use per window.

`gate.call` reserves before a call and settles after it; `start_run` and `count_message` count
runs and messages; `read` says what is left. See docs/budgets.md.
"""

from .gate import Budget, call, call_now
from .limits import Limit, is_any_set, limits_for, resolve
from .measures import Estimate, Meter, format_amount, format_limit
from .payers import NO_PAYER, Payer, current_payer, payer_of, paying
from .refusals import reset_sentence
from .starts import (
    check_calls,
    check_run,
    count_last_minute,
    count_message,
    lock_user,
    start_run,
)
from .states import BudgetState, read, read_limits

__all__ = [
    "Budget",
    "BudgetState",
    "Estimate",
    "Limit",
    "Meter",
    "NO_PAYER",
    "Payer",
    "call",
    "call_now",
    "check_calls",
    "check_run",
    "count_last_minute",
    "count_message",
    "current_payer",
    "format_amount",
    "format_limit",
    "is_any_set",
    "limits_for",
    "lock_user",
    "payer_of",
    "paying",
    "read",
    "read_limits",
    "reset_sentence",
    "resolve",
    "start_run",
]
