"""A server made with the protocol's own library, in its newest revision."""

from mcp.server.mcpserver import Context, MCPServer

ledger = MCPServer("ledger")


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
