"""A server made with FastMCP that asks the user and the model, and reports progress."""

import asyncio
import socket
import sys

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.server.elicitation import AcceptedElicitation
from fastmcp.server.middleware import Middleware


class OnlyForClientsThatAsk(Middleware):
    """Lists the tool with a question only to clients that can show one."""

    async def on_list_tools(self, context, call_next):
        capabilities = context.fastmcp_context.session.client_capabilities
        can_ask = bool(capabilities and capabilities.elicitation)
        return [tool for tool in await call_next(context) if can_ask or tool.name != "greet"]


asker = FastMCP("asker", middleware=[OnlyForClientsThatAsk()])


@asker.tool
async def greet(ctx: Context) -> str:
    """Greets the user by name."""
    answer = await ctx.elicit("What is your name?", response_type=str)
    named = isinstance(answer, AcceptedElicitation)
    return f"Hello {answer.data}." if named else f"Hello stranger ({answer.action})."


@asker.tool
async def work(ctx: Context, steps: int) -> str:
    """Works in steps."""
    for n in range(1, steps + 1):
        await asyncio.sleep(0.15)
        await ctx.report_progress(n, steps, f"Part {n}")
    return "done"


def listen(way: str) -> None:
    door = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{door.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(asker.http_app(transport=way), log_level="error")
    uvicorn.Server(config).run(sockets=[door])


if sys.argv[1] == "stdio":
    asker.run(show_banner=False)
else:
    listen(sys.argv[1])
