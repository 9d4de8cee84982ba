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
from .output_schema import (
    INSTRUCTIONS,
    OutputSchema,
    is_number,
    table_columns,
    write_number,
)
from .plain_request import PlainReply, ask_briefly, ask_once
from .recorded_calls import (
    CallNotRecorded,
    Divergence,
    MadeCall,
    RecordedCall,
    RecordedCalls,
    RecordedPerson,
    RecordedTool,
    call_key,
    first_divergence,
    made_call,
)
from .run_limits import APPROVERS, BUDGET, RAISE_TOOL
from .run_loop import Events
from .runtime import AgentRuntime
from .termination import StopReason, standard_policy
from .tool_fallback import FallbackStrategy, effect

__all__ = [
    "APPROVERS",
    "AgentRuntime",
    "ApprovalDecision",
    "AskPersonTool",
    "BUDGET",
    "CallNotRecorded",
    "CallOutcome",
    "Divergence",
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
    "MadeCall",
    "OutputSchema",
    "PlainReply",
    "RecordedCall",
    "RecordedCalls",
    "RecordedPerson",
    "RecordedTool",
    "StopReason",
    "UNFINISHED",
    "UntrustedPolicy",
    "ask_briefly",
    "ask_once",
    "call_key",
    "effect",
    "first_divergence",
    "is_number",
    "made_call",
    "record_outcomes",
    "standard_policy",
    "table_columns",
    "write_number",
    "RAISE_TOOL",
]
