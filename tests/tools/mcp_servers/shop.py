"""A server made with FastMCP: over stdio, or on a port that it prints."""

import asyncio
import socket
import sys

import uvicorn
from fastmcp import Context, FastMCP

shop = FastMCP("shop")
sold = []


@shop.tool(annotations={"readOnlyHint": True})
def price(item: str) -> int:
    """What an item costs."""
    return len(item)


@shop.tool
def sell(item: str) -> dict[str, list[str]]:
    """Sells an item."""
    sold.append(item)
    return {"sold": sold}


@shop.tool
async def wait(ctx: Context) -> str:
    """Never returns."""
    sold.append("begun")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        sold.append("cancelled")
        raise
    return ""


@shop.tool
def everything_sold() -> list[str]:
    """What was sold."""
    return sold


@shop.tool
def huge(size: int) -> str:
    """As many bytes."""
    return "x" * size


@shop.tool
async def reprice(ctx: Context) -> str:
    """Changes what price says."""

    @shop.tool(name="price", annotations={"readOnlyHint": True})
    def dearer(item: str) -> int:
        """What an item costs today."""
        return len(item) * 2

    return "done"


def listen(way: str) -> None:
    door = socket.create_server(("127.0.0.1", int(sys.argv[2] or 0)))
    sys.stdout.write(f"{door.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(shop.http_app(transport=way), log_level="error")
    uvicorn.Server(config).run(sockets=[door])


if sys.argv[1:2] == ["stdio"]:
    shop.run(show_banner=False)
else:
    listen(sys.argv[1])
