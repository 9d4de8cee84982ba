"""A server that requires OAuth, over HTTP on a port that it prints.

FastMCP's own authorization server: discovery, dynamic registration, PKCE, refresh, revocation.
It has no page of its own: whoever opens it is signed in. `--seconds` is how long access tokens
last, `--refuse` has it refuse everyone.
"""

import argparse
import socket
import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers import in_memory
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

options = argparse.ArgumentParser()
options.add_argument("--port", type=int, default=0)
options.add_argument("--seconds", type=int, default=3600)
options.add_argument("--refuse", action="store_true")
arguments = options.parse_args()


class Accounts(in_memory.InMemoryOAuthProvider):
    async def authorize(self, client, params):
        if arguments.refuse:
            reason = {"error": "access_denied", "error_description": "Not today."}
            return construct_redirect_uri(
                str(params.redirect_uri), **reason, state=params.state
            )
        return await super().authorize(client, params)


in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = arguments.seconds
door = socket.create_server(("127.0.0.1", arguments.port))
address = f"http://127.0.0.1:{door.getsockname()[1]}"
accounts = Accounts(
    base_url=address,
    client_registration_options=ClientRegistrationOptions(enabled=True),
    revocation_options=RevocationOptions(enabled=True),
)
club = FastMCP("club", auth=accounts)


@club.tool(annotations={"readOnlyHint": True})
def account() -> str:
    """The token that this call came with, and how many are valid."""
    return f"{get_access_token().token} of {len(accounts.access_tokens)}"


@club.tool
def revoke_everything() -> str:
    """Forgets all tokens, as an administrator there might."""
    accounts.access_tokens.clear()
    accounts.refresh_tokens.clear()
    return "done"


sys.stdout.write(f"{address}/mcp\n")
sys.stdout.flush()
config = uvicorn.Config(club.http_app(), log_level="error")
uvicorn.Server(config).run(sockets=[door])
