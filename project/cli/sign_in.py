"""Signs in to a server: with a code that the user enters in a browser (RFC 8628), or a key."""

import asyncio
import sys
import time
import webbrowser
from typing import Any
from urllib.parse import urlsplit

import httpx2

from agents.management.escapes import escape_line

from . import profiles
from .errors import UNUSABLE, CommandFailed, ServerError
from .profiles import SignIn
from .server import TIMEOUT, Server, sign_in_of

CLIENT_ID = "ashiato-cli"
SCOPES = "ask read approve configure"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
DEFAULT_INTERVAL = 5.0  # RFC 8628
WAITING_ERRORS = frozenset({"authorization_pending", "slow_down"})
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def clean_url(text: str) -> str:
    """Return the address of a server without what follows its host."""
    url = urlsplit(text if "://" in text else f"https://{text}")
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise CommandFailed(f"{text} isn't the address of a server.", UNUSABLE)
    if url.scheme == "http" and url.hostname not in LOOPBACK:
        sys.stderr.write("Warning: without https, others in the network can read your token.\n")
    return f"{url.scheme}://{url.netloc}"


async def log_in(url: str, key: str) -> None:
    """Sign in and save it, as the server that the next commands use."""
    sign_in = SignIn(token=key) if key else await _authorize_device(url)
    user = await _user_of(url, sign_in)
    profiles.remember(url, sign_in)
    sys.stderr.write(f"Signed in to {url} as {escape_line(user)}.\n")


async def log_out(url: str) -> None:
    """Forget a sign-in, and revoke its token; a key stays usable elsewhere."""
    sign_in = profiles.forget(url)
    if sign_in is None:
        raise CommandFailed(f"You aren't signed in to {url}.")
    if sign_in.refresh_token:
        try:
            await _revoke(url, sign_in)
        except CommandFailed as error:
            sys.stderr.write(f"The token stays valid on the server. {error}\n")
    sys.stderr.write(f"Signed out from {url}.\n")


async def _revoke(url: str, sign_in: SignIn) -> None:
    async with httpx2.AsyncClient(timeout=TIMEOUT) as client:
        endpoints = await _discover(client, url)
        fields = {"token": sign_in.refresh_token, "client_id": sign_in.client_id}
        await _call(client, "POST", endpoints["revocation_endpoint"], data=fields)


async def _user_of(url: str, sign_in: SignIn) -> str:
    """Return the name of the user as whom this signs in."""
    async with Server.connect(url, sign_in) as server:
        try:
            return str((await server.me())["user"]["username"])
        except ServerError as error:
            if error.status == httpx2.codes.NOT_FOUND:
                raise CommandFailed(f"{url} isn't an Ashiato server.", UNUSABLE) from error
            raise


async def _authorize_device(url: str) -> SignIn:
    async with httpx2.AsyncClient(timeout=TIMEOUT) as client:
        endpoints = await _discover(client, url)
        fields = {"client_id": CLIENT_ID, "scope": SCOPES}
        device = await _call(
            client, "POST", endpoints["device_authorization_endpoint"], data=fields
        )
        page = device.get("verification_uri_complete") or device["verification_uri"]
        code = escape_line(device["user_code"])
        sys.stderr.write(f"Open {escape_line(page)}\nand confirm the code {code}\n")
        if sys.stdin.isatty():
            await asyncio.to_thread(webbrowser.open, page)
        token = await _wait_for_token(client, endpoints["token_endpoint"], device)
    blank = SignIn(token="", token_endpoint=endpoints["token_endpoint"], client_id=CLIENT_ID)
    return sign_in_of(token, blank)


async def _discover(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """Return the addresses with which the server lets apps sign in (RFC 8414)."""
    endpoints = await _call(client, "GET", f"{url}/.well-known/oauth-authorization-server")
    if "device_authorization_endpoint" not in endpoints:
        raise CommandFailed(
            f"{url} isn't an Ashiato server that terminals sign in to.", UNUSABLE
        )
    return endpoints


async def _wait_for_token(
    client: httpx2.AsyncClient, endpoint: str, device: dict[str, Any]
) -> dict[str, Any]:
    interval = float(device.get("interval", DEFAULT_INTERVAL))
    deadline = time.monotonic() + device["expires_in"]
    fields = {
        "grant_type": DEVICE_GRANT,
        "device_code": device["device_code"],
        "client_id": CLIENT_ID,
    }
    while time.monotonic() < deadline:
        await asyncio.sleep(interval)
        answer = await _call(client, "POST", endpoint, data=fields, expected=WAITING_ERRORS)
        if "access_token" in answer:
            return answer
        if answer["error"] == "slow_down":
            interval += DEFAULT_INTERVAL
    raise CommandFailed("Nobody confirmed the code in time. Run the command again.")


async def _call(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    data: dict[str, str] | None = None,
    expected: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the answer in JSON; raise CommandFailed unless it is a success or expected."""
    try:
        response = await client.request(method, url, data=data)
    except httpx2.TransportError as error:
        reason = str(error) or type(error).__name__
        raise CommandFailed(f"Can't reach {url}: {reason}.") from error
    is_json = "json" in response.headers.get("Content-Type", "")
    answer: dict[str, Any] = response.json() if is_json and response.content else {}
    if response.is_success or answer.get("error") in expected:
        return answer
    if answer.get("error") == "access_denied":
        raise CommandFailed("The sign-in was rejected in the browser.")
    description = answer.get("error_description") or answer.get("error")
    raise CommandFailed(str(description or f"{url} answered {response.status_code}."))
