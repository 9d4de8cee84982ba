"""The run loop: model step, tool step, approvals, handoffs, limits and recovery."""

from .cancellation import CallOutcome, record_outcomes
from .capability import (
    Answer,
    Attachments,
    Capability,
    Context,
    ModelHandler,
    ToolHandler,
    without,
)
from .first_retrieval import FirstRetrieval
from .handoff import HANDOFF_PREFIX, UNFINISHED, Handoff
from .model_calls.cached_replies import ReplyCache
from .model_calls.compaction import SUMMARY_INSTRUCTIONS, SUMMARY_TOKENS, Compaction
from .model_calls.plain_request import PlainReply, ask_briefly, ask_once
from .model_calls.sampling import Sampling
from .output.answer_citations import Citations
from .output.figure_check import FigureCheck
from .output.output_schema import (
    INSTRUCTIONS,
    OutputSchema,
    is_number,
    table_columns,
    write_number,
)
from .run_limits import APPROVERS, BUDGET, RAISE_TOOL
from .run_loop import Events, RunLoop
from .runtime import AgentRuntime
from .termination import StopReason, Termination, standard_policy
from .tool_calls.approval import (
    ApprovalDecision,
    Approvals,
    AskPersonTool,
    GrantCheck,
    Grants,
    StandingApproval,
    UntrustedPolicy,
    fingerprint,
)
from .tool_calls.cached_calls import ResultCache
from .tool_calls.client_tool import CLIENT, ClientTool
from .tool_calls.function_tool import FunctionTool
from .tool_calls.offered_tools import ToolSelection
from .tool_calls.recorded_calls import (
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
from .tool_calls.tool_fallback import FallbackResult, FallbackStrategy, effect

__all__ = [
    "APPROVERS",
    "AgentRuntime",
    "Answer",
    "ApprovalDecision",
    "Approvals",
    "AskPersonTool",
    "Attachments",
    "BUDGET",
    "CLIENT",
    "CallNotRecorded",
    "CallOutcome",
    "Capability",
    "Citations",
    "ClientTool",
    "Compaction",
    "Context",
    "Divergence",
    "Events",
    "FallbackResult",
    "FallbackStrategy",
    "GrantCheck",
    "Grants",
    "SUMMARY_INSTRUCTIONS",
    "SUMMARY_TOKENS",
    "StandingApproval",
    "fingerprint",
    "FigureCheck",
    "FirstRetrieval",
    "FunctionTool",
    "HANDOFF_PREFIX",
    "Handoff",
    "INSTRUCTIONS",
    "MadeCall",
    "ModelHandler",
    "OutputSchema",
    "PlainReply",
    "RecordedCall",
    "RecordedCalls",
    "RecordedPerson",
    "RecordedTool",
    "ReplyCache",
    "ResultCache",
    "RunLoop",
    "Sampling",
    "StopReason",
    "Termination",
    "ToolHandler",
    "ToolSelection",
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
    "without",
    "write_number",
    "RAISE_TOOL",
]
