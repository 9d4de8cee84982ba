"""The run loop: model step, tool step, approvals, handoffs, limits and recovery."""

from .approval import (
    ApprovalDecision,
    AskPersonTool,
    GrantCheck,
    StandingApproval,
    UntrustedPolicy,
    fingerprint,
)
from .cancellation import CallOutcome, record_outcomes
from .compaction import HistoryLimits
from .function_tool import FunctionTool
from .handoff import HANDOFF_PREFIX, UNFINISHED, Handoff
from .output_schema import INSTRUCTIONS, OutputSchema, is_number, table_columns
from .plain_request import PlainReply, ask_once
from .run_loop import Events
from .runtime import AgentRuntime
from .termination import StopReason, standard_policy
from .tool_fallback import FallbackStrategy, effect

__all__ = [
    "AgentRuntime",
    "ApprovalDecision",
    "AskPersonTool",
    "CallOutcome",
    "Events",
    "FallbackStrategy",
    "GrantCheck",
    "StandingApproval",
    "fingerprint",
    "FunctionTool",
    "HANDOFF_PREFIX",
    "Handoff",
    "HistoryLimits",
    "INSTRUCTIONS",
    "OutputSchema",
    "PlainReply",
    "StopReason",
    "UNFINISHED",
    "UntrustedPolicy",
    "ask_once",
    "effect",
    "is_number",
    "record_outcomes",
    "standard_policy",
    "table_columns",
]
