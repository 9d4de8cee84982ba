"""Stands for the product: connects to a server, says so, and waits to be killed."""

import asyncio
import sys

from agents.tools.mcp_config import ServerConfig
from agents.tools.mcp_connection import Connection


async def main() -> None:
    connection = Connection(
        ServerConfig(name="plain", command=sys.argv[1], args=tuple(sys.argv[2:]))
    )
    await connection.ready()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.sleep(600)


asyncio.run(main())
