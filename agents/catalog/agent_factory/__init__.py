"""Builds engine values from rows: agents with guardrails, tools and handoffs."""

from .circuits import CIRCUITS
from .defaults import default_agent, default_candidates_for
from .errors import AgentForbidden, NoAgentAvailable
from .guardrails import build_guardrails, guardrail_names, inspect_input, pattern_from
from .model_checks import build_check, cost_today
from .personal_data import personal_data_policy
from .plain_replies import PlainModel, load_model
from .relations import DRAFT_KEY, tool_names
from .runtime import as_dry_run, build, workflow_agent_name
from .streams import own_events, resume, start, stream_with

__all__ = [
    "AgentForbidden",
    "CIRCUITS",
    "DRAFT_KEY",
    "NoAgentAvailable",
    "PlainModel",
    "as_dry_run",
    "load_model",
    "build",
    "build_check",
    "build_guardrails",
    "cost_today",
    "default_agent",
    "default_candidates_for",
    "guardrail_names",
    "inspect_input",
    "pattern_from",
    "own_events",
    "personal_data_policy",
    "resume",
    "start",
    "stream_with",
    "tool_names",
    "workflow_agent_name",
]
