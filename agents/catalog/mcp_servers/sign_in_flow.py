"""A user signs in to an MCP server: from the button to the page that comes back.

The SDK's flow runs in a thread with an event loop of its own, while the user is on the
authorization server's page. They may come back to another process, so what they bring is passed
on in a row.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.contrib.auth.models import User
from django.utils import timezone

from agents.db import database
from agents.engine.sentences import Sentence as _
from agents.models import McpServer, McpSignInAttempt
from agents.models.secret import UnreadableSecret
from agents.tools.egress import AddressBlocked, Egress, resolve_in_own_loop
from agents.tools.mcp.connection.connection import Connection
from agents.tools.mcp.errors import ServerUnavailable
from agents.tools.mcp.sign_in import (
    OTHER_AUTHORIZATION_SERVER,
    AuthorizationResponse,
    Credentials,
    SignInFailed,
)

from . import sign_ins
from .configuration import server_config
from .connections import disconnect, egress

SIGN_IN_SECONDS = 600.0
PAGE_SECONDS = 30.0
FINISH_SECONDS = 20.0
POLL_SECONDS = 0.2
LOOKUP_SECONDS = 5.0
RETENTION = timedelta(hours=1)
MAX_FLOWS = 50  # that one process waits for
BUSY = _("Many users are signing in right now. Try again in a few minutes.")
EXPIRED = _("This sign-in has expired. Start again.")


_flows = threading.BoundedSemaphore(MAX_FLOWS)


def start(server: McpServer, user: User, redirect_uri: str, next_url: str) -> str:
    """Return the page where the user signs in; raise SignInFailed."""
    try:
        client = sign_ins.client_of(server, redirect_uri)
    except UnreadableSecret as error:
        raise SignInFailed(str(error)) from error
    McpSignInAttempt.objects.filter(started_at__lt=timezone.now() - RETENTION).delete()
    # One at a time: the thread of an attempt ends when its row is gone.
    McpSignInAttempt.objects.filter(server=server, user=user).delete()
    if not _flows.acquire(blocking=False):
        raise SignInFailed(BUSY)
    attempt = McpSignInAttempt.objects.create(
        server=server, user=user, next_url=next_url, started_at=timezone.now()
    )
    owner = sign_ins.owner(server, user)
    flow = _Flow(
        server=server,
        attempt=attempt.pk,
        user=owner.pk if owner else None,
        redirect_uri=redirect_uri,
        client=client,
    )
    threading.Thread(target=flow.run, name="mcp sign-in", daemon=True).start()
    try:
        return flow.page.result(PAGE_SECONDS)
    except TimeoutError as error:
        raise SignInFailed(
            _("%(name)s didn't respond in time. Try again.", name=server.name)
        ) from error


def finish(user: User, parameters: Mapping[str, str]) -> McpSignInAttempt:
    """Pass on what the user came back with; return the finished attempt.

    Raises SignInFailed if it is no answer to an attempt of this user.
    """
    since = timezone.now() - timedelta(seconds=SIGN_IN_SECONDS)
    state = parameters.get("state", "")
    attempts = McpSignInAttempt.objects.filter(user=user, state=state, started_at__gt=since)
    attempt = attempts.select_related("server").first() if state else None
    if attempt is None or attempt.response:
        raise SignInFailed(EXPIRED)
    names = ("code", "state", "iss", "error", "error_description")
    attempt.response = {name: parameters[name] for name in names if name in parameters}
    attempt.save(update_fields=["response"])
    deadline = time.monotonic() + FINISH_SECONDS
    while not attempt.is_done and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        attempt.refresh_from_db(fields=["is_done", "error"])
    if not attempt.is_done:
        attempt.error = EXPIRED
    return attempt


@dataclass(kw_only=True)
class _Flow:
    """One attempt; to the connection, it is the sign-in."""

    server: McpServer
    attempt: int
    user: int | None
    redirect_uri: str
    client: Mapping[str, Any]
    metadata_url: str = ""
    page: "Future[str]" = field(default_factory=Future)
    credentials: Credentials | None = None  # once they are signed in

    def run(self) -> None:
        try:
            asyncio.run(self._run())
        finally:
            _flows.release()

    async def _run(self) -> None:
        error = await self._connect()
        attempts = McpSignInAttempt.objects.filter(pk=self.attempt)
        await database.run(attempts.update, is_done=True, error=error)
        with suppress(InvalidStateError):  # the user has seen the page
            self.page.set_exception(SignInFailed(error))
        disconnect(self.server.name, self.user)

    async def _connect(self) -> str:
        """Connect, which asks for the sign-in; return why it failed."""
        url = sign_ins.metadata_url(self.redirect_uri)
        if url and await _is_public(url):
            self.metadata_url = url
        config = replace(
            server_config(self.server), sign_in=self, connect_timeout=SIGN_IN_SECONDS
        )
        connection = Connection(config, egress=egress())
        try:
            await connection.ready(again=False)
        except ServerUnavailable:
            # Tokens are saved before the tools are listed.
            return "" if self.credentials else connection.health.error
        finally:
            await connection.close()
        if self.credentials:
            return ""
        return _("%(name)s doesn't ask for a sign-in.", name=self.server.name)

    async def load(self) -> Credentials:
        return self.credentials or Credentials(client=self.client)

    async def save_client(self, client: Mapping[str, Any]) -> None:
        if not self.server.oauth_client_id:
            await database.run(sign_ins.save_client, self.server, client)

    async def save_tokens(self, credentials: Credentials) -> None:
        if self.server.oauth_client_id:
            issuer = {"issuer": credentials.metadata.get("issuer")}
            credentials = replace(credentials, client={**credentials.client, **issuer})
            await database.run(sign_ins.save_client, self.server, issuer)
        await database.run(
            sign_ins.save_sign_in, self.server.pk, self.user, self.server.url, credentials
        )
        self.credentials = credentials

    async def authorize(self, url: str, rejected: Mapping[str, Any]) -> None:
        if self.page.done():  # the server didn't accept what it has just given
            raise SignInFailed
        query = parse_qs(urlsplit(url).query)
        if self.server.oauth_client_id not in ("", *query["client_id"]):
            raise SignInFailed(OTHER_AUTHORIZATION_SERVER)
        [state] = query.get("state", [""])
        attempts = McpSignInAttempt.objects.filter(pk=self.attempt)
        await database.run(attempts.update, state=state)
        with suppress(InvalidStateError):
            self.page.set_result(url)

    async def response(self) -> AuthorizationResponse:
        attempts = McpSignInAttempt.objects.filter(pk=self.attempt)
        while True:
            attempt = await database.run(attempts.first)
            if attempt is None:
                raise SignInFailed(EXPIRED)
            if response := attempt.response.reveal():
                break
            await asyncio.sleep(POLL_SECONDS)
        if "error" in response or not response.get("code"):
            why = response.get("error_description") or response.get("error") or ""
            raise SignInFailed(
                _("The server didn't let you sign in: %(reason)s", reason=why[:300])
                if why
                else ""
            )
        return AuthorizationResponse(
            code=response["code"], state=response["state"], issuer=response.get("iss")
        )


async def _is_public(url: str) -> bool:
    """Whether others may be able to read this URL of ours, by its host's address."""
    address = urlsplit(url)
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            policy = Egress(resolve=resolve_in_own_loop)
            await policy.addresses(address.hostname or "", address.port or 443)
    except (AddressBlocked, OSError):
        return False
    return True
