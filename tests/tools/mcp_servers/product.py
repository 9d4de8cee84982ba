"""A process like the product: connects to a server, prints it, and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from agents.tools.mcp.configuration.config import Folder, Sandbox, ServerConfig
from agents.tools.mcp.connection.connection import Connection


async def main() -> None:
    command, *args = sys.argv[1:]
    config = ServerConfig(
        name="plain",
        command=command,
        args=tuple(args),
        folders=(Folder(str(Path(args[1]).parent), is_writable=True),),
        sandbox=Sandbox(levels=("landlock", "user")),
    )
    connection = Connection(config)
    await connection.ready()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.sleep(600)


asyncio.run(main())
