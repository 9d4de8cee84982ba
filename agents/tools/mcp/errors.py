"""Why a tool of an MCP server couldn't be called."""

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _


class ServerUnavailable(ToolError):
    message = _("The server isn't available.")


class ToolWithdrawn(ToolError):
    message = _(
        "The server no longer offers this tool, or has changed it since it was accepted."
    )


def gone_message(server: str, tool: str) -> str:
    return _("%(name)s no longer offers %(tool)s.", name=server, tool=tool)


def changed_message(server: str, tool: str) -> str:
    return _(
        "%(tool)s of %(name)s has changed. Ask an administrator to accept the change.",
        tool=tool,
        name=server,
    )
