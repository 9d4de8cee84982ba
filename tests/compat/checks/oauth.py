"""Apps that sign in with OAuth: by the examples of the page, and with the MCP SDK's client."""

import asyncio
import json
from contextlib import closing
from typing import Any

import httpx2
from authlib.common.security import generate_token
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

from tests.accounts.oauth_server.browser import Browser, Storage
from tests.compat.packages import installed_version
from tests.compat.rows import row
from tests.compat.served import example, run, serve

WAYS_IN = "Ways in"
PAGE = "oauth.md"
SERVER = "https://chat.example.org"
REDIRECT_URI = "http://127.0.0.1/callback"
PLAYED = "the user, who signs in and allows it"


async def _register(url: str) -> str:
    """Register an app as the page does, and return its client ID."""
    command = example(PAGE, "sh").replace(SERVER, url)
    return str(json.loads(await run("sh", "-c", command))["client_id"])


@row(WAYS_IN, "OAuth with curl", real="curl, by the examples of the page", played=PLAYED)
async def check_curl() -> str:
    async with serve() as ashiato:
        app, verifier = await _register(ashiato.url), generate_token(48)
        browser = Browser(ashiato.url)
        with closing(browser.http):
            parameters = {
                "response_type": "code",
                "client_id": app,
                "redirect_uri": REDIRECT_URI,
                "scope": "ask read",
                "state": "s",
                "code_challenge": create_s256_code_challenge(verifier),
                "code_challenge_method": "S256",
            }
            url = httpx2.URL(f"{ashiato.url}/oauth/authorize", params=parameters)
            await browser.open(str(url))
        command = example(PAGE, "sh", 1).replace(SERVER, ashiato.url)
        command = command.replace("client_id=app_…", f"client_id={app}")
        command = command.replace("code=…", f"code={browser.parameters['code']}")
        command = command.replace("code_verifier=…", f"code_verifier={verifier}")
        tokens = json.loads(await run("sh", "-c", command))
    assert tokens["scope"] == "ask read", tokens
    return f"a token for {tokens['expires_in']:,} s, and a refresh token"


@row(
    WAYS_IN,
    "OAuth with Authlib",
    installed_version("authlib"),
    real="Authlib's client, by the example of the page",
    played=PLAYED,
)
async def check_authlib() -> str:
    async with serve() as ashiato:
        text = example(PAGE, "python").replace(SERVER, ashiato.url)
        text = text.replace("app_…", await _register(ashiato.url))
        text = text.replace("https://notes.example/callback", REDIRECT_URI)
        first, second = text.split("# The user comes back")
        names: dict[str, Any] = {}
        await asyncio.to_thread(exec, first, names)
        browser = Browser(ashiato.url)
        with closing(browser.http):
            await browser.open(names["url"])
        names["back"] = browser.back
        await asyncio.to_thread(exec, f"# The user comes back{second}", names)
    return f"{len(names['agents'])} agents"


@row(
    WAYS_IN,
    "OAuth with the MCP SDK",
    installed_version("mcp"),
    real="its OAuthClientProvider: discovery, registration, sign-in, refresh",
    played=PLAYED,
)
async def check_mcp_sdk() -> str:
    async with serve() as ashiato:
        browser, storage = Browser(ashiato.url), Storage()
        about = OAuthClientMetadata(
            client_name="MCP SDK",
            redirect_uris=["http://127.0.0.1:43123/callback"],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
        )
        server = f"{ashiato.url}/mcp"
        provider = OAuthClientProvider(server, about, storage, browser.open, browser.result)
        with closing(browser.http):
            async with httpx2.AsyncClient(auth=provider, timeout=60) as client:
                first = await client.get(server)
                provider.context.token_expiry_time = 1.0
                second = await client.get(server)
        assert 401 not in {first.status_code, second.status_code}
    return "found, registered, signed in and refreshed by itself"
