"""The `mcpServers` blocks that other clients document, pasted into the import page."""

from textwrap import dedent

from agents.tools.mcp.config_import import read_servers
from tests.compat.rows import Check, row
from tests.tools.mcp_clients import CLIENTS

AREA = "MCP configurations"
READER = "the reader of the import page"
BLOCK = "the client, by the block in its documentation"


def _check(client: str) -> Check:
    async def check() -> str:
        wanted = CLIENTS[client]
        servers = read_servers(dedent(wanted.text))
        assert {server.config.name for server in servers} == {*wanted.servers}, servers
        problems = [problem for server in servers for problem in server.problems]
        assert not problems, problems
        missing = [value.name for server in servers for value in server.missing]
        counted = f"{len(servers)} server{'s' if len(servers) > 1 else ''}"
        return f"{counted}; asks for {', '.join(missing)}" if missing else counted

    return check


for _client in CLIENTS:
    row(AREA, _client, real=READER, played=BLOCK, is_short=True)(_check(_client))
