"""Tools as an installation may have them."""

from agents.engine import function_tool


@function_tool
def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()
