"""Why a tool of an MCP server couldn't be called."""

from agents.engine.errors import ToolError


class ServerUnavailable(ToolError):
    """The server isn't available."""


class ToolWithdrawn(ToolError):
    """The server doesn't offer the tool any more, or not as it was accepted."""


def gone_message(server: str, tool: str) -> str:
    return f"{server} no longer offers {tool}."


def changed_message(server: str, tool: str) -> str:
    return f"{tool} of {server} has changed and waits for an administrator to accept it."
