"""A server made with the protocol's own library, only in its newest revision."""

import mcp_types as wire
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer


async def refuse_handshake(ctx, call_next):
    """Refuse the handshake of the revisions before."""
    if ctx.method == "initialize":
        raise MCPError(code=wire.METHOD_NOT_FOUND, message="Method not found")
    return await call_next(ctx)


ledger = MCPServer("ledger", middleware=[refuse_handshake])


def balance() -> int:
    """The balance."""
    return 12


def audit() -> str:
    """Looks at every line."""
    return "all is well"


@ledger.tool()
async def hire(ctx: Context) -> str:
    """Hires an auditor."""
    ledger.add_tool(audit)
    await ctx.notify_tools_changed()
    return "hired"


ledger.add_tool(balance)
ledger.run("stdio")
