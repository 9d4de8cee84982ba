"""A server that requires OAuth, over HTTP on a port that it prints.

FastMCP's own authorization server: discovery, dynamic registration, PKCE, refresh, revocation.
It has no page of its own: whoever opens it is signed in. `--seconds` is how long access tokens
last, `--refuse` has it refuse everyone. With `--client` (`id:secret`, or only the id) and
`--redirect` it knows this client and no other, with `--document` that of a client metadata
document, which it doesn't fetch.
"""

import argparse
import json
import socket
import sys
from hashlib import sha256
from pathlib import Path

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth import auth
from fastmcp.server.auth.providers import in_memory
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull

options = argparse.ArgumentParser()
options.add_argument("--port", type=int, default=0)
options.add_argument("--seconds", type=int, default=3600)
options.add_argument("--refuse", action="store_true")
options.add_argument("--client", default="")
options.add_argument("--redirect")
options.add_argument("--document", type=Path)
arguments = options.parse_args()
registers = not (arguments.client or arguments.document)
build_metadata = auth.build_metadata


def announce(*details):
    metadata = build_metadata(*details)
    metadata.client_id_metadata_document_supported = arguments.document is not None
    return metadata


class Accounts(in_memory.InMemoryOAuthProvider):
    async def authorize(self, client, params):
        if arguments.refuse:
            reason = {"error": "access_denied", "error_description": "Not today."}
            return construct_redirect_uri(
                str(params.redirect_uri), **reason, state=params.state
            )
        return await super().authorize(client, params)


auth.build_metadata = announce
in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = arguments.seconds
door = socket.create_server(("127.0.0.1", arguments.port))
address = f"http://127.0.0.1:{door.getsockname()[1]}"
accounts = Accounts(
    base_url=address,
    client_registration_options=ClientRegistrationOptions(enabled=registers),
    revocation_options=RevocationOptions(enabled=True),
)
if arguments.document:
    known = json.loads(arguments.document.read_text())
elif arguments.client:
    name, _colon, secret = arguments.client.partition(":")
    known = {
        "client_id": name,
        "client_secret": secret or None,
        "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
        "redirect_uris": [arguments.redirect],
    }
if not registers:
    accounts.clients[known["client_id"]] = OAuthClientInformationFull.model_validate(known)
club = FastMCP("club", auth=accounts)


@club.tool(annotations={"readOnlyHint": True})
def account() -> str:
    """A fingerprint of the token that this call came with, and how many are valid."""
    fingerprint = sha256(get_access_token().token.encode()).hexdigest()[:16]
    return f"{fingerprint} of {len(accounts.access_tokens)}"


@club.tool(annotations={"readOnlyHint": True})
def repeat() -> str:
    """What this call came with, as a careless server might say."""
    return f"You sent: {get_access_token().token}."


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
