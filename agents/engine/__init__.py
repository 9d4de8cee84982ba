"""The agent engine: values in, events out. It has no web framework in it."""

from .errors import (
    AgentConnectionError,
    AgentError,
    BadPattern,
    BadSchema,
    BudgetExceeded,
    CircuitOpen,
    DuplicateToolCall,
    DuplicateToolError,
    EmptyReply,
    GuardrailBlocked,
    LimitReached,
    MaxStepsExceeded,
    ModelError,
    ModelTimeout,
    OutputDecodingFailed,
    PlanParseError,
    ProviderFailed,
    RateLimited,
    RunCancelled,
    ToolCallLimitReached,
    ToolError,
    ToolExecutionFailed,
    ToolNotFoundError,
    TruncatedReply,
)
from .events import Event
from .guardrails.checks import GuardrailAction, GuardrailResult, Guardrails
from .loop.capability import Capability
from .loop.handoff import Handoff
from .loop.output.output_schema import OutputSchema
from .loop.runtime import AgentResult, AgentRuntime
from .loop.termination import (
    BudgetPolicy,
    DuplicateDetectionPolicy,
    StandardTerminationPolicy,
    StopReason,
    TerminationPolicy,
    ToolCallLimitPolicy,
)
from .loop.tool_calls.function_tool import FunctionTool, function_tool
from .loop.tool_calls.tool_fallback import FallbackResult, FallbackStrategy
from .planner.react_planner import ReActPlanner
from .plans.definition.plan import ExecutionPlan, ExecutionStep
from .plans.orchestrator import Orchestrator
from .plans.panel import Panel
from .plans.workflow import WorkflowRuntime
from .resilience.circuit_breaker import CircuitBreaker, CircuitPolicy, Circuits
from .resilience.retry import RetryPolicy
from .state import AgentState, AgentStep
from .tool import Attachment, Tool, ToolRegistry, ToolResult
from .turn.assembly import PlanResult

__all__ = [
    "BudgetExceeded",
    "DuplicateToolCall",
    "GuardrailBlocked",
    "RunCancelled",
    "ToolCallLimitReached",
    "AgentConnectionError",
    "AgentError",
    "AgentResult",
    "AgentRuntime",
    "AgentState",
    "AgentStep",
    "Attachment",
    "BadPattern",
    "BadSchema",
    "BudgetPolicy",
    "Capability",
    "CircuitBreaker",
    "CircuitOpen",
    "CircuitPolicy",
    "Circuits",
    "DuplicateDetectionPolicy",
    "DuplicateToolError",
    "EmptyReply",
    "Event",
    "ExecutionPlan",
    "ExecutionStep",
    "FallbackResult",
    "FallbackStrategy",
    "FunctionTool",
    "GuardrailAction",
    "GuardrailResult",
    "Guardrails",
    "Handoff",
    "LimitReached",
    "MaxStepsExceeded",
    "ModelError",
    "ModelTimeout",
    "Orchestrator",
    "OutputDecodingFailed",
    "OutputSchema",
    "Panel",
    "PlanParseError",
    "PlanResult",
    "ProviderFailed",
    "RateLimited",
    "RetryPolicy",
    "ReActPlanner",
    "StandardTerminationPolicy",
    "StopReason",
    "TerminationPolicy",
    "Tool",
    "ToolCallLimitPolicy",
    "ToolError",
    "ToolExecutionFailed",
    "ToolNotFoundError",
    "ToolRegistry",
    "ToolResult",
    "TruncatedReply",
    "WorkflowRuntime",
    "function_tool",
]
