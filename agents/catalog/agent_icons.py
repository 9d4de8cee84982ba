"""The icon of an agent without one of its own, by what it does."""

from collections.abc import Sequence

from agents.models import Agent

FALLBACK = Agent.Icon.FOOTPRINTS
SUPPORTING_TOOLS = {"read_document", "remember"}
ICON_OF_TOOL = {"search": Agent.Icon.BOOK, "database": Agent.Icon.CHART}


def automatic_icon(agent: Agent, tools: Sequence[str], *, has_handoffs: bool) -> str:
    """Return an icon for an agent with these tools."""
    if agent.mode == Agent.Mode.PLAN:
        return Agent.Icon.PLAN
    if agent.mode == Agent.Mode.PANEL:
        return Agent.Icon.SCALES
    if not agent.auto_execute_tools:
        return Agent.Icon.SHIELD
    if agent.output_schema is not None:
        return Agent.Icon.TABLE
    if has_handoffs:
        return Agent.Icon.PEOPLE
    main = [tool for tool in tools if tool not in SUPPORTING_TOOLS]
    return ICON_OF_TOOL.get(main[0], FALLBACK) if len(main) == 1 else FALLBACK
