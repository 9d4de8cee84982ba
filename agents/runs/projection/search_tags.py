"""The tags by which the trace list finds a finished run."""

from collections.abc import Iterator

from agents.models import AgentStep

MAX_TAGS = 100
PASS_ACTION = "pass"  # a model check that found nothing
MAX_NAME_CHARS = 64


def search_tag(kind: str, name: str) -> str:
    """Return a search tag: a tool by name, a guardrail by action."""
    return f"{kind}={name[:MAX_NAME_CHARS].replace('|', ' ').lower()}"


def step_tags(kind: str, action: str, failed_tool: str, status: str) -> Iterator[str]:
    if status == AgentStep.Status.UNSTARTED:
        return
    # A check that found nothing isn't a hit.
    if kind != AgentStep.Kind.GUARDRAIL or action != PASS_ACTION:
        yield kind
    if kind in {AgentStep.Kind.TOOL, AgentStep.Kind.GUARDRAIL}:
        yield search_tag(kind, action)
    if failed_tool:
        yield search_tag(kind, failed_tool)
    if status == AgentStep.Status.FAILED:
        yield status
