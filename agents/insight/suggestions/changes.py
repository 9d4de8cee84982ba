"""What a suggestion changes: it adds a line to an agent's instructions or removes a tool.

What is there already stays as it is: rules of safety and format are never rewritten.
"""

from copy import deepcopy

from agents.catalog.agent_spec import AgentSpec

from .models import Suggestion

Kind = Suggestion.Kind


def changed_spec(spec: AgentSpec, suggestion: Suggestion, text: str) -> AgentSpec:
    """Return the agent's settings with the suggestion."""
    changed = deepcopy(spec)
    if suggestion.kind == Kind.TOOL_UNUSED:
        changed["tools"].pop(suggestion.subject, None)
    else:
        own = changed["instructions"].rstrip()
        changed["instructions"] = f"{own}\n\n{text}" if own else text
    return changed


def is_contained(spec: AgentSpec, suggestion: Suggestion) -> bool:
    """Whether the settings have what is suggested, so that there is nothing to change."""
    if suggestion.kind == Kind.TOOL_UNUSED:
        return suggestion.subject not in spec["tools"]
    return bool(suggestion.text) and suggestion.text in spec["instructions"]


def is_possible(spec: AgentSpec, suggestion: Suggestion) -> bool:
    """Whether the change still makes sense for these settings."""
    needs_tool = suggestion.kind != Kind.INSTRUCTION
    return not needs_tool or suggestion.subject in spec["tools"]
