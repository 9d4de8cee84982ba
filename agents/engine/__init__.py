"""A pure agent engine: values in, events out. It knows nothing of the web."""

from .breaker import CircuitBreaker, CircuitPolicy, Circuits
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
from .fallback import FallbackResult, FallbackStrategy
from .function import FunctionTool, function_tool
from .guardrails import GuardrailAction, GuardrailResult, Guardrails
from .handoff import Handoff
from .output import OutputSchema
from .planner import PlanResult, ReActPlanner
from .plans.orchestrator import Orchestrator
from .plans.panel import Panel
from .plans.plan import ExecutionPlan, ExecutionStep
from .plans.workflow import Workflow
from .retry import RetryPolicy
from .runtime import AgentResult, AgentRuntime
from .state import AgentState, AgentStep
from .termination import (
    BudgetPolicy,
    DuplicateDetectionPolicy,
    StandardTerminationPolicy,
    StopReason,
    TerminationPolicy,
    ToolCallLimitPolicy,
)
from .tool import Tool, ToolRegistry, ToolResult

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
    "BadPattern",
    "BadSchema",
    "BudgetPolicy",
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
    "Workflow",
    "function_tool",
]
